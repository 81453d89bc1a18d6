import type { FleetOptions } from '../../../features/fleet/core/roll/lock-fleet.js';
import { plainOrQuoted, quoteSome } from '../../../kernel/util/quoted.js';
import { type InstanceLife, type Roll, rollOf } from '../../views/roll.js';
import type { Output } from './output.js';
import type { Session } from './session.js';

/** How long instances may take to answer. It ends sooner where all have answered. */
const ROLL_MS = 1_000;

/** Asks all instances. @throws LockUnavailableError */
export async function pollInstances({ client }: Session, options: FleetOptions = {}): Promise<Roll> {
  const fleet = await client.fleet({ timeoutMs: ROLL_MS, ...options });
  return rollOf(fleet, await client.connected());
}

/**
 * Tells which part of an answer is missing.
 *
 * @param hint what to do where not all leases are listed; `null` where they were found in another way
 * @returns whether any is
 */
export function tellMissing(
  { instances, silent, unreadable }: Roll,
  output: Pick<Output, 'note'>,
  hint: string | null = '',
): boolean {
  const lines: string[] = [];
  if (silent.length > 0) {
    lines.push(
      `Connected but silent (frozen, too busy, cut off from messages or of an older version): ${quoteSome(silent, 5)}.`,
    );
  }
  if (unreadable > 0) lines.push(`${unreadable} answers could not be read: of a newer version, or forged.`);
  const long = instances.filter(({ more }) => more.held + more.waiting > 0);
  if (long.length > 0 && hint !== null) {
    const some = long.slice(0, 3).map(({ instanceId, more }) => {
      return `${plainOrQuoted(instanceId)} (${more.held} held, ${more.waiting} waiting)`;
    });
    lines.push(`Not everything is listed: ${some.join(', ')}${long.length > 3 ? ' and others' : ''}.${hint}`);
  }
  lines.forEach((line) => output.note(line));
  return lines.length > 0;
}

export const LIFE_WORDS: Readonly<Record<InstanceLife, string>> = {
  answers: 'alive',
  silent: 'does not answer',
  gone: 'not connected, probably dead',
  unheard: 'has not answered',
};
