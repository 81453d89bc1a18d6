import type { ClaimEnd } from '../../../../lib/features/jobs/core/job-claims.js';
import type { JobClaims } from '../../../../lib/features/jobs/core/job-store.js';
import type { CronSimulationOptions } from './cron-simulation.js';
import { RARE_JOBS } from './simulated-job.js';

/** Stalls longer than any claim of these jobs is kept. */
export const LONG_PAUSES = {
  ticks: 200,
  jobs: RARE_JOBS,
  longestPauseMs: 3 * 3_600_000,
  calmMs: 1_200_000,
} as const satisfies Partial<CronSimulationOptions>;

interface BrokenLedger {
  /** Which rule finds it out. */
  readonly rule: string;
  breakLedger(claims: JobClaims): JobClaims;
  /** In which simulation. */
  readonly options?: Partial<CronSimulationOptions>;
}

let forged = 0;

/** Remembers for this time only that the tick has run. */
function kept(claim: ClaimEnd, claimTtlMs: number): ClaimEnd {
  return claim.to === 'finished' ? { ...claim, claimTtlMs } : claim;
}

/** Takes any tick that it does not remember. */
export function unjudged(claims: JobClaims): JobClaims {
  return {
    claim: (tick, claim) => claims.claim(tick, { ...claim, due: undefined }),
    end: (owner, ended) => claims.end(owner, ended),
  };
}

/** Ledgers that are wrong, each in its own way. */
export const brokenLedgers: Readonly<Record<string, BrokenLedger>> = {
  'it forgets a claim at once': {
    rule: 'duplicate',
    breakLedger: (claims) => ({
      claim: (tick, claim) => claims.claim(tick, { ...claim, claimTtlMs: 1 }),
      end: (owner, { claim }) => claims.end(owner, { claim: kept(claim!, 1) }),
    }),
  },
  'it remembers a claim for less than the clocks are apart': {
    rule: 'duplicate',
    breakLedger: (claims) => ({
      claim: (tick, claim) => claims.claim(tick, { ...claim, claimTtlMs: 20_000 }),
      end: (owner, { claim }) => claims.end(owner, { claim: kept(claim!, 20_000) }),
    }),
  },
  'it remembers a claim for as long as ever, but does not judge a tick by the time': {
    rule: 'duplicate',
    breakLedger: unjudged,
    options: LONG_PAUSES,
  },
  'it knows a tick by the time it is asked': {
    rule: 'duplicate',
    breakLedger: (claims) => ({
      claim: (tick, claim) => claims.claim({ ...tick, tick: claim.owner.id }, claim),
      end: (owner, { claim }) => claims.end(owner, { claim: { ...claim!, tick: owner.id } }),
    }),
  },
  'it gives a rescuer the tick of a runner who lives': {
    rule: 'overlap',
    breakLedger: (claims) => ({
      async claim(tick, claim) {
        const reply = await claims.claim(tick, claim);
        if (reply.status !== 'taken' || claim.takeOver === 'nothing' || reply.ttlMs === 0) return reply;
        return { status: 'granted', fencingToken: 2 ** 52 + ++forged, attempt: 2 };
      },
      end: (owner, ended) => claims.end(owner, ended),
    }),
  },
  'it does not note that a run has ended': {
    rule: 'rerun of a whole run',
    breakLedger: (claims) => ({
      claim: (tick, claim) => claims.claim(tick, claim),
      end: async (owner, ended) => ended.claim?.to === 'finished' || claims.end(owner, ended),
    }),
  },
  'it loses a claim that must wait': {
    rule: 'missed',
    breakLedger: (claims) => ({
      async claim(tick, claim) {
        const reply = await claims.claim(tick, claim);
        return reply.status === 'claimed' ? { status: 'overlap' } : reply;
      },
      end: (owner, ended) => claims.end(owner, ended),
    }),
  },
};
