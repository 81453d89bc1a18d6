import { findings } from '../../../features/fleet/core/findings/findings.js';
import { healthSeen, type Instance, oldestWaitMs, totalsOf, withoutAnswers } from '../../views/roll.js';
import type { ConsoleBodies } from '../bodies.js';
import { completenessOf, type Content } from './fleet-views.js';
import { locksByTrouble } from './lock-views.js';
import type { SnapshotCache } from './source.js';

const MAX_LOCKS = 10;

export async function showNow(looks: SnapshotCache): Promise<Content<'now'>> {
  // Throws if the command line has no connection, so it is read before anything is asked that would then reject unheard.
  const hasJobs = Boolean(looks.source.jobs);
  const [fleet, { health, mayOnlyLook }, jobs] = await Promise.all([
    looks.roll().catch(withoutAnswers),
    looks.health(),
    hasJobs ? looks.jobs().catch(withoutAnswers) : undefined,
  ]);
  const { status, topology, roundTripMs, problems } = healthSeen(health, mayOnlyLook);
  const locks = fleet ? locksByTrouble(fleet) : [];
  const instances = fleet?.instances ?? [];
  const oldestMs = oldestWaitMs({ instances });
  return {
    at: fleet?.askedAt ?? looks.now(),
    fleet: fleet ? completenessOf(fleet) : null,
    findings: findings(fleet, jobs, { status, problems }),
    redis: { status, topology, roundTripMs, problems: problems.map(({ code, message }) => ({ code, message })) },
    ...totalsOf({ instances }),
    oldestWaitSince: fleet && oldestMs !== undefined ? fleet.askedAt - oldestMs : null,
    lastMinute: lastMinuteOf(instances),
    locks: locks.slice(0, MAX_LOCKS),
    lockCount: locks.length,
  };
}

function lastMinuteOf(instances: readonly Instance[]): ConsoleBodies['now']['lastMinute'] {
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
