import type { HeldMeanwhile } from '../api/errors.js';
import type { Hold } from '../holding/hold.js';
import type { PendingCall } from './pending-call.js';

/** How many calls are looked at. Where so many wait for each other, a deadlock is one of many troubles. */
const MOST = 100;

/** The queue of a resource in this process. */
interface Queue {
  readonly calls: readonly PendingCall[];
}

/**
 * What a call holds that has waited in vain, and whether that is why: a call of this process waits for it, directly or
 * behind others, and holds what this call waits for.
 */
export function heldMeanwhile(
  resource: string,
  call: PendingCall,
  queues: ReadonlyMap<string, Queue>,
): HeldMeanwhile | undefined {
  if (holdsNothing(call)) return undefined;
  const found = findCycle(resource, locksOf(call), call, queues);
  // Their own time may be over in the same moment, when this call does not wait any more.
  for (const other of found) other.isInDeadlock = true;
  const isDeadlock = found.length > 0 || call.isInDeadlock === true;
  // The parts of one call are taken in the same order everywhere. Only where that did not help, it matters what it has.
  const holds = isDeadlock ? liveHolds(call) : outerHolds(call);
  const resources = namesOf(holds).filter((held) => held !== resource);
  return resources.length === 0 ? undefined : { resources, isDeadlock };
}

/** @returns the calls that wait in a circle with this one; none where there is no circle */
function findCycle(
  resource: string,
  held: readonly string[],
  call: PendingCall,
  queues: ReadonlyMap<string, Queue>,
): PendingCall[] {
  /** Calls that wait for what this call holds, each with those that wait in between. */
  const paths = held.map((wanted) => ({ wanted, path: [] as PendingCall[] }));
  const seen = new Set(held);
  let looked = 0;
  for (const { wanted, path } of paths) {
    for (const other of queues.get(wanted)?.calls ?? []) {
      if (other === call || holdsNothing(other)) continue;
      if (++looked > MOST) return [];
      const holds = locksOf(other);
      if (holds.includes(resource)) return [...path, other];
      for (const next of holds) {
        if (seen.has(next)) continue;
        seen.add(next);
        paths.push({ wanted: next, path: [...path, other] });
      }
    }
  }
  return [];
}

/** The innermost first: the parts of a call for several resources, and what its caller held before. */
export function liveHolds(call: Pick<PendingCall, 'several' | 'nested'>): readonly Hold[] {
  const parts = call.several?.leases.map(({ hold }) => hold).reverse() ?? [];
  return [...parts.filter((hold) => hold.checkHeld()), ...outerHolds(call)];
}

function outerHolds({ nested }: Pick<PendingCall, 'nested'>): readonly Hold[] {
  return nested?.holds.filter((hold) => hold.checkHeld()) ?? [];
}

function holdsNothing({ nested, several }: PendingCall): boolean {
  return nested === undefined && (several === undefined || several.leases.length === 0);
}

/** Without semaphores: another holder may give its permits back. */
function locksOf(call: PendingCall): string[] {
  return namesOf(liveHolds(call).filter(({ mode }) => mode !== 'semaphore'));
}

function namesOf(holds: readonly Hold[]): string[] {
  return [...new Set(holds.map(({ owner }) => owner.resource))];
}
