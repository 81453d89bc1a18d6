import type { FleetInstance } from '../../../features/fleet/core/roll/lock-fleet.js';
import { oldestWaitMs, totalsOf } from '../../views/roll.js';
import type { ConsoleBodies } from '../bodies.js';
import { completenessOf, type Content } from './fleet-views.js';
import { rowsByTrouble } from './lock-views.js';
import type { SnapshotCache } from './source.js';

const MAX_LOCKS = 10;

export async function showNow(looks: SnapshotCache): Promise<Content<'now'>> {
  const { fleet, findings, health } = await looks.survey();
  const { status, topology, roundTripMs, problems } = health;
  const locks = fleet ? rowsByTrouble(fleet) : [];
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
  const [first, ...others] = instances.flatMap(({ lastMinute }) => lastMinute ?? []);
  if (!first) return null;
  return others.reduce(
    (sum, each) => ({
      forMs: Math.min(sum.forMs, each.forMs),
      acquired: sum.acquired + each.acquired,
      notAcquired: sum.notAcquired + each.notAcquired,
      lost: sum.lost + each.lost,
      timedOut: sum.timedOut + each.timedOut,
    }),
    first,
  );
}
