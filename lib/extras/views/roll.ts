import { UNKNOWN_GROUP } from '../../features/fleet/core/contention/blockers.js';
import { namedGroup } from '../../kernel/api/holder.js';
import type { SeenHolder } from '../../features/fleet/core/roll/seen-locks.js';
import type { FleetReport } from '../../features/fleet/core/roll/lock-fleet.js';

/** Holders without a subscription: dead ones, and those whose Redis user may not subscribe. */
export function unsubscribedIn({ unlisted, silent }: FleetReport): string[] {
  const ids = unlisted.filter(({ life }) => life === 'unknown' || life === 'dead').map(({ instanceId }) => instanceId);
  return [...new Set(ids)].filter((instanceId) => !silent.includes(instanceId));
}

/** The numbers of leases and of waiting calls, with the unlisted ones. */
export function totalsOf({ instances }: Pick<FleetReport, 'instances'>): { held: number; waiting: number } {
  const unlisted = unlistedIn({ instances });
  const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0);
  return {
    held: unlisted.held + sum(instances.map(({ held }) => held.length)),
    waiting: unlisted.waiting + sum(instances.map(({ waiting }) => waiting.length)),
  };
}

/** The numbers of leases and waiting calls that the answers do not list. */
export function unlistedIn({ instances }: Pick<FleetReport, 'instances'>): { held: number; waiting: number } {
  const sums = { held: 0, waiting: 0 };
  for (const { more } of instances) {
    sums.held += more.held;
    sums.waiting += more.waiting;
  }
  return sums;
}

/** The longest wait so far of the listed calls, in milliseconds; `undefined` if none waits. */
export function oldestWaitMs({ instances }: Pick<FleetReport, 'instances'>): number | undefined {
  const waits = instances.flatMap(({ waiting }) => waiting.map(({ waitedMs }) => waitedMs));
  return waits.length > 0 ? waits.reduce((a, b) => Math.max(a, b)) : undefined;
}

/** The name of a group for people. */
export function groupName(group: string): string {
  return group === UNKNOWN_GROUP ? 'not known' : (namedGroup(group) ?? 'everything else');
}

/** The group of a call and its place in the code. The group of everything else has no name. */
export function workOf({ group, callSite }: Pick<SeenHolder, 'group' | 'callSite'>): string {
  return [namedGroup(group), callSite].filter(Boolean).join(' ');
}
