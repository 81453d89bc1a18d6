import type { TickStore } from '../../../../lib/core/store/tick-store.js';
import type { CronSimulationOptions } from './cron-simulation.js';
import { RARE_JOBS } from './simulated-job.js';

/** Processes stand still for longer than any claim of these jobs is remembered. */
export const LONG_PAUSES = {
  ticks: 200,
  jobs: RARE_JOBS,
  longestPauseMs: 3 * 3_600_000,
  calmMs: 1_200_000,
} as const satisfies Partial<CronSimulationOptions>;

interface BrokenLedger {
  /** Which rule finds it out. */
  readonly rule: string;
  breakLedger(tickStore: TickStore): TickStore;
  /** In which simulation. */
  readonly options?: Partial<CronSimulationOptions>;
}

let forged = 0;

/** Takes any tick that it does not remember. */
export function unjudged(tickStore: TickStore): TickStore {
  return {
    claim: (tick, claim) => tickStore.claim(tick, { ...claim, due: undefined }),
    finish: (tick, owner, keepMs) => tickStore.finish(tick, owner, keepMs),
    giveBack: (tick, owner, keepMs) => tickStore.giveBack(tick, owner, keepMs),
  };
}

/** Ledgers that are wrong, each in its own way. */
export const brokenLedgers: Readonly<Record<string, BrokenLedger>> = {
  'it forgets a claim at once': {
    rule: 'duplicate',
    breakLedger: (tickStore) => ({
      claim: (tick, claim) => tickStore.claim(tick, { ...claim, keepMs: 1 }),
      finish: (tick, owner) => tickStore.finish(tick, owner, 1),
      giveBack: (tick, owner, keepMs) => tickStore.giveBack(tick, owner, keepMs),
    }),
  },
  'it remembers a claim for less than the clocks are apart': {
    rule: 'duplicate',
    breakLedger: (tickStore) => ({
      claim: (tick, claim) => tickStore.claim(tick, { ...claim, keepMs: 20_000 }),
      finish: (tick, owner) => tickStore.finish(tick, owner, 20_000),
      giveBack: (tick, owner, keepMs) => tickStore.giveBack(tick, owner, keepMs),
    }),
  },
  'it remembers a claim for as long as ever, but does not judge a tick by the time': {
    rule: 'duplicate',
    breakLedger: unjudged,
    options: LONG_PAUSES,
  },
  'it knows a tick by the time it is asked': {
    rule: 'duplicate',
    breakLedger: (tickStore) => ({
      claim: (tick, claim) => tickStore.claim({ ...tick, tick: claim.owner.id }, claim),
      finish: (tick, owner, keepMs) => tickStore.finish({ ...tick, tick: owner.id }, owner, keepMs),
      giveBack: (tick, owner, keepMs) => tickStore.giveBack({ ...tick, tick: owner.id }, owner, keepMs),
    }),
  },
  'it gives a rescuer the tick of a runner who lives': {
    rule: 'overlap',
    breakLedger: (tickStore) => ({
      async claim(tick, claim) {
        const reply = await tickStore.claim(tick, claim);
        if (reply.status !== 'taken' || claim.takeOver === 'nothing' || reply.ttlMs === 0) return reply;
        return { status: 'granted', fencingToken: 2 ** 52 + ++forged, rerun: true };
      },
      finish: (tick, owner, keepMs) => tickStore.finish(tick, owner, keepMs),
      giveBack: (tick, owner, keepMs) => tickStore.giveBack(tick, owner, keepMs),
    }),
  },
  'it does not note that a run has ended': {
    rule: 'rerun of a whole run',
    breakLedger: (tickStore) => ({
      claim: (tick, claim) => tickStore.claim(tick, claim),
      finish: () => Promise.resolve(),
      giveBack: (tick, owner, keepMs) => tickStore.giveBack(tick, owner, keepMs),
    }),
  },
  'it loses a claim that must wait': {
    rule: 'missed',
    breakLedger: (tickStore) => ({
      async claim(tick, claim) {
        const reply = await tickStore.claim(tick, claim);
        return reply.status === 'claimed' ? { status: 'overlap' } : reply;
      },
      finish: (tick, owner, keepMs) => tickStore.finish(tick, owner, keepMs),
      giveBack: (tick, owner, keepMs) => tickStore.giveBack(tick, owner, keepMs),
    }),
  },
};
