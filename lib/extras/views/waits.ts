import type { FleetInstance, FleetReport } from '../../features/fleet/core/roll/lock-fleet.js';
import { locksIn } from '../../features/fleet/core/roll/locks-in.js';

/** The time that calls of one group have waited for another one. */
export type Blocked = FleetInstance['blockers'][number];

/** The groups that wait for each other at this moment. `waitedMs` is the longest wait of them. */
export function blockedNow(fleet: FleetReport): Blocked[] {
  const blocked = [...locksIn(fleet).values()].flatMap(({ holders: [first], waits }) => {
    const holder = first ? (first.group ?? 'a holder that does not answer') : 'not known';
    return waits.map(({ group: waiter, waitedMs }) => ({ waiter, holder, waitedMs, calls: 1 }));
  });
  return merged(blocked, Math.max);
}

/** The waits that have ended since the instances count, within the last ten minutes at most. */
export function blockedLately({ instances }: Pick<FleetReport, 'instances'>): Blocked[] {
  return merged(instances.flatMap(({ blockers }) => blockers));
}

function merged(all: readonly Blocked[], both = (a: number, b: number): number => a + b): Blocked[] {
  const found = new Map<string, Blocked>();
  for (const each of all) {
    const key = JSON.stringify([each.waiter, each.holder]);
    const before = found.get(key);
    found.set(
      key,
      before ? { ...each, calls: before.calls + each.calls, waitedMs: both(before.waitedMs, each.waitedMs) } : each,
    );
  }
  return [...found.values()].sort((a, b) => b.waitedMs - a.waitedMs);
}
