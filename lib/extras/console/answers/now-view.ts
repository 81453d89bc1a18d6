import type { FleetInstance } from '../../../features/fleet/core/roll/lock-fleet.js';
import { oldestWaitMs, totalsOf } from '../../views/roll.js';
import type { ConsoleBodies } from '../bodies.js';
import { completenessOf, type Content } from './fleet-views.js';
import { locksByTrouble } from './lock-views.js';
import type { SnapshotCache } from './source.js';

const MAX_LOCKS = 10;

export async function showNow(looks: SnapshotCache): Promise<Content<'now'>> {
  const { fleet, findings, health } = await looks.survey();
  const { status, topology, roundTripMs, problems } = health;
  const locks = fleet ? locksByTrouble(fleet) : [];
  const instances = fleet?.instances ?? [];
  const oldestMs = oldestWaitMs({ instances });
  return {
    at: fleet?.askedAt ?? looks.now(),
    fleet: fleet ? completenessOf(fleet) : null,
    findings,
    redis: { status, topology, roundTripMs, problems: problems.map(({ code, message }) => ({ code, message })) },
    ...totalsOf({ instances }),
    oldestWaitSince: fleet && oldestMs !== undefined ? fleet.askedAt - oldestMs : null,
    lastMinute: lastMinuteOf(instances),
    locks: locks.slice(0, MAX_LOCKS),
    lockCount: locks.length,
  };
}

function lastMinuteOf(instances: readonly FleetInstance[]): ConsoleBodies['now']['lastMinute'] {
  const counts = instances.flatMap(({ lastMinute }) => (lastMinute ? [lastMinute] : []));
  if (counts.length === 0) return null;
  const sum = (of: 'acquired' | 'notAcquired' | 'lost' | 'timedOut'): number =>
    counts.reduce((all, each) => all + each[of], 0);
  return {
    forMs: Math.min(...counts.map(({ forMs }) => forMs)),
    acquired: sum('acquired'),
    notAcquired: sum('notAcquired'),
    lost: sum('lost'),
    timedOut: sum('timedOut'),
  };
}
