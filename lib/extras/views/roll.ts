import { UNKNOWN_GROUP } from '../../features/fleet/core/contention/blockers.js';
import { namedGroup } from '../../kernel/api/holder.js';
import type { FleetHolder } from '../../features/fleet/core/roll/locks-in.js';
import type { FleetReport } from '../../features/fleet/core/roll/lock-fleet.js';

/** The numbers of leases and of waiting calls, with the unlisted ones. */
export function totalsOf({ instances }: Pick<FleetReport, 'instances'>): { held: number; waiting: number } {
  const unlisted = unlistedIn({ instances });
  return {
    held: instances.reduce((sum, { held }) => sum + held.length, unlisted.held),
    waiting: instances.reduce((sum, { waiting }) => sum + waiting.length, unlisted.waiting),
  };
}

/** The numbers of leases and waiting calls that the answers do not list. */
export function unlistedIn({ instances }: Pick<FleetReport, 'instances'>): { held: number; waiting: number } {
  return {
    held: instances.reduce((sum, { more }) => sum + more.held, 0),
    waiting: instances.reduce((sum, { more }) => sum + more.waiting, 0),
  };
}

/** The longest wait so far of the listed calls, in milliseconds; `undefined` if none waits. */
export function oldestWaitMs({ instances }: Pick<FleetReport, 'instances'>): number | undefined {
  const waits = instances.flatMap(({ waiting }) => waiting.map(({ waitedMs }) => waitedMs));
  return waits.length > 0 ? waits.reduce((a, b) => Math.max(a, b)) : undefined;
}

/** The {@link groupName} of calls without a group. */
export const EVERYTHING_ELSE = 'everything else';

/** The name of a group for people. */
export function groupName(group: string): string {
  return group === UNKNOWN_GROUP ? 'not known' : (namedGroup(group) ?? EVERYTHING_ELSE);
}

/** The group of a call and its place in the code. The group of everything else has no name. */
export function workOf({ group, callSite }: Pick<FleetHolder, 'group' | 'callSite'>): string {
  return [namedGroup(group), callSite].filter(Boolean).join(' ');
}
