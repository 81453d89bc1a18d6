import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toJsonLines, type TriedCall } from '../../../lib/extras/cli/try/history.js';
import { type Call, type Hold, reenters } from './call.js';
import type { History } from './history.js';

/**
 * Writes a history for checkers of other people: see docs/operations/check-us.md. Writes none if Redis lost data or its
 * clock was moved, because then overlaps are expected.
 *
 * @param folder created if it is missing
 * @returns the path of the file
 */
export function exportHistory(history: History, folder: string, name: string): string | undefined {
  if (history.faults.some(({ breaksPromises }) => breaksPromises)) return undefined;
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name.match(/[\w-]+/g)!.join('-')}.jsonl`);
  writeFileSync(path, toJsonLines(toldCalls(history)));
  return path;
}

/** A call of several resources is one for each of them. A lease counts until it is downgraded, or has fewer permits. */
function toldCalls({ calls, holds }: History): TriedCall[] {
  const held = new Map<Call, Hold[]>();
  for (const hold of holds) held.set(hold.call, [...(held.get(hold.call) ?? []), hold]);
  return calls
    .filter((call) => !reenters(call))
    .flatMap((call) => {
      return call.invoked.resources.map((key) =>
        tell(
          call,
          key,
          held.get(call)?.find(({ resource }) => resource === key),
        ),
      );
    });
}

function tell({ invoked, refused, lost, endedAt, diedAt }: Call, key: string, hold: Hold | undefined): TriedCall {
  const { mode, permits, total, at: askedAt } = invoked;
  const asked = {
    key,
    mode: mode === 'semaphore' ? mode : mode === 'read' ? 'shared' : 'exclusive',
    ...(mode === 'semaphore' && { permits: permits ?? 1, total: total ?? 1 }),
    askedAt,
  } as const;
  if (!hold) {
    const gaveUpAt = refused?.at ?? diedAt;
    return {
      ...asked,
      ...(gaveUpAt !== undefined && { endedAt: gaveUpAt }),
      end: refused?.type === 'fail' ? 'refused' : 'unknown',
    };
  }
  const { from: at, to: heldUntil, token } = hold;
  const knownAt = lost?.at ?? endedAt ?? diedAt ?? heldUntil;
  return {
    ...asked,
    lease: { at, token, heldUntil },
    endedAt: Math.max(knownAt, heldUntil),
    end: lost ? 'lost' : 'released',
  };
}
