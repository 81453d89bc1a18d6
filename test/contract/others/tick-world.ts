import type { LockOwner } from '../../../lib/kernel/store/lock-store.js';
import type { Tick, TickClaim } from '../../../lib/features/jobs/core/job-claims.js';
import type { JobClaims } from '../../../lib/features/jobs/core/job-store.js';
import { LONG_MS, newOwner } from '../requests.js';
import type { Base } from '../suite.js';

export const TICK = { resource: 'job:report', tick: '2026-01-01T00:00:00Z' };
export const NEXT_TICK = { ...TICK, tick: '2026-01-01T00:01:00Z' };

export function wish(owner: LockOwner, changes: Partial<TickClaim> = {}): TickClaim {
  return { owner, leaseMs: LONG_MS, claimTtlMs: LONG_MS, overlap: 'skip', takeOver: 'nothing', ...changes };
}

/** The tick has run. */
export function finishClaim(jobs: JobClaims, owner: LockOwner, { tick }: Tick): Promise<boolean> {
  return jobs.end(owner, { claim: { tick, to: 'finished', claimTtlMs: LONG_MS } });
}

/** The owner has not begun the run, and never will. */
export function giveBack(jobs: JobClaims, owner: LockOwner, { tick }: Tick): Promise<boolean> {
  return jobs.end(owner, { claim: { tick, to: 'returned', claimTtlMs: LONG_MS } });
}

/** Two instances that claim the ticks of one job: a runner on the first, and another owner on the second. */
export async function openTicks({ subject }: Base) {
  const { locks: store, jobs } = await subject.open('one');
  const { locks: otherStore, jobs: otherJobs } = await subject.open('two');
  const runner = newOwner(store, TICK.resource);
  return {
    store,
    jobs,
    otherJobs,
    runner,
    other: newOwner(otherStore, TICK.resource),
    /** Ends the run of the runner. */
    finish: async (tick = TICK): Promise<void> => {
      await finishClaim(jobs, runner, tick);
      await store.release(runner);
    },
  };
}
