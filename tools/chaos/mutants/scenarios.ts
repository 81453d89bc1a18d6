import type { ChaosRedisOptions } from '../servers/chaos-redis.js';
import { SteppedClock } from '../servers/stepped-clock.js';
import type { WorldSettings } from '../world/world.js';
import type { LockMutant } from './lock-mutants.mjs';
import {
  answersNobody,
  comesBackOld,
  diesOfGrant,
  hearsNothing,
  intrudes,
  killsAll,
  losesPower,
  refuses,
  sendsLate,
  stops,
  suspends,
  type Trouble,
} from './troubles.js';

/** A small world in which some kinds of mutants do harm. */
export interface Scenario {
  readonly settings: Omit<WorldSettings, 'seed' | 'replaced'>;
  /** The time limit for the harm, generous for a busy machine; then all is closed. 0: as long as the trouble. */
  readonly lastsMs: number;
  /** The duration without a mutant. */
  readonly enoughMs: number;
  readonly trouble?: Trouble;
  /** @default one that keeps nothing */
  readonly redis?: ChaosRedisOptions;
  /** Module options for its workers. @default none */
  readonly options?: { restartQuarantineMs: number };
  /** `true` if the clocks of the workers have to be movable. */
  readonly needsClock?: boolean;
}

/** Returns true if this machine can run it. */
export function isPlayable(scenario: LockMutant['scenario']): boolean {
  return SteppedClock.isSupported || !scenarios[scenario].needsClock;
}

/** Most harm is done within seconds. On a very busy machine the moment for it may not come for as long as this. */
const LASTS_MS = 120_000;
const PAIR = { workers: 2, isObserved: false } as const;
const QUIET = { resources: 1, longHolds: 0, campaigns: false, ticks: false } as const;
/** One call of each process: it gives its place to no other, and what is passed on in memory is not written. */
const FORGOTTEN = {
  workers: 3,
  isObserved: false,
  // Enough to restart Redis and reconnect, on a busy machine.
  leaseMs: 10_000,
  work: { ...QUIET, callers: 1, longHolds: 100, ways: { exclusive: 1 } },
} as const;

export const scenarios: Readonly<Record<LockMutant['scenario'], Scenario>> = {
  /** All workers want all resources, in all modes, without faults. */
  rush: {
    settings: {
      ...PAIR,
      leaseMs: 300,
      work: {
        ...QUIET,
        callers: 6,
        longHolds: 2,
        ways: {
          exclusive: 4,
          tried: 1,
          hasty: 3,
          aborted: 2,
          reentrant: 5,
          read: 5,
          write: 5,
          permits: 6,
        },
      },
    },
    lastsMs: LASTS_MS,
    enoughMs: 2_500,
  },
  /** Stalls outlast leases. */
  standstill: {
    settings: { ...PAIR, leaseMs: 250, work: { ...QUIET, callers: 2, longHolds: 30, ways: { exclusive: 1 } } },
    lastsMs: LASTS_MS,
    enoughMs: 4_000,
    trouble: stops,
  },
  /** The same, and their monotonic clocks know nothing of it. */
  suspended: {
    settings: {
      ...PAIR,
      leaseMs: 250,
      work: { ...QUIET, callers: 2, longHolds: 30, ways: { exclusive: 1 } },
      ...(SteppedClock.isSupported && { newClock: () => SteppedClock.create() }),
    },
    lastsMs: LASTS_MS,
    enoughMs: 4_000,
    trouble: suspends,
    needsClock: true,
  },
  /** Commands arrive long after their call has ended. */
  'cut off': {
    settings: { ...PAIR, leaseMs: 250, work: { ...QUIET, callers: 2, longHolds: 90, ways: { exclusive: 1 } } },
    lastsMs: LASTS_MS,
    enoughMs: 4_000,
    trouble: sendsLate,
  },
  /** Grant messages get lost. */
  deaf: {
    settings: { ...PAIR, leaseMs: 250, work: { ...QUIET, callers: 1, ways: { exclusive: 1 } } },
    lastsMs: LASTS_MS,
    enoughMs: 4_000,
    trouble: hearsNothing(2_500),
  },
  /** The same with leases that last longer than a heartbeat: what is lost stays lost for long. */
  patient: {
    settings: {
      ...PAIR,
      leaseMs: 4_000,
      work: { ...QUIET, callers: 1, ways: { exclusive: 1, aborted: 1, permits: 2 } },
    },
    lastsMs: LASTS_MS,
    enoughMs: 5_000,
    trouble: hearsNothing(4_000),
  },
  /** Redis is silent for a while, again and again, while calls wait and give up. */
  outage: {
    settings: {
      ...PAIR,
      leaseMs: 250,
      work: { ...QUIET, callers: 4, ways: { impatient: 4, polled: 1, tried: 1 } },
    },
    lastsMs: LASTS_MS,
    enoughMs: 6_000,
    trouble: answersNobody(2_000),
  },
  /** The same with leases as users have them. Places are kept so seldom that many waits end before. */
  'long outage': {
    settings: {
      ...PAIR,
      leaseMs: 12_000,
      work: { ...QUIET, callers: 16, ways: { impatient: 1 } },
    },
    lastsMs: LASTS_MS,
    enoughMs: 8_000,
    trouble: answersNobody(6_000),
  },
  /** Another client sends into the inboxes. */
  intruder: {
    settings: {
      ...PAIR,
      leaseMs: 600,
      work: { ...QUIET, callers: 2, longHolds: 30, ways: { exclusive: 4, read: 2, write: 2 } },
    },
    lastsMs: LASTS_MS,
    enoughMs: 4_000,
    trouble: intrudes,
  },
  /**
   * Many calls give up in the same moment. It only counts if the first call in line of its process gives up, after a
   * second without stalls.
   */
  crowd: {
    settings: {
      ...PAIR,
      leaseMs: 250,
      work: { ...QUIET, resources: 4, callers: 12, longHolds: 70, ways: { mixed: 1 } },
    },
    lastsMs: LASTS_MS,
    enoughMs: 4_000,
  },
  /** The queue is observed. */
  queue: {
    settings: { workers: 3, leaseMs: 400, work: { ...QUIET, callers: 1, longHolds: 30, ways: { exclusive: 1 } } },
    lastsMs: LASTS_MS,
    enoughMs: 2_500,
  },
  /** Processes die right after a grant. */
  killed: {
    settings: { ...PAIR, leaseMs: 250, work: { ...QUIET, callers: 2, ways: { exclusive: 1 } } },
    lastsMs: LASTS_MS,
    enoughMs: 3_000,
    trouble: diesOfGrant,
  },
  /** Redis comes back as it was a moment ago, and grants nothing for a lease. */
  'old snapshot': {
    settings: FORGOTTEN,
    lastsMs: LASTS_MS,
    enoughMs: 20_000,
    trouble: comesBackOld,
    redis: { persistence: 'none', rights: ['+info'] },
    options: { restartQuarantineMs: FORGOTTEN.leaseMs },
  },
  /** The same where it logs each write, and loses the last ones. */
  'power failure': {
    settings: FORGOTTEN,
    lastsMs: LASTS_MS,
    enoughMs: 20_000,
    trouble: losesPower,
    redis: { persistence: 'everysec', rights: ['+info', '+config|get'] },
    options: { restartQuarantineMs: FORGOTTEN.leaseMs },
  },
  /** Redis refuses everything for a second. */
  refused: {
    settings: { ...PAIR, leaseMs: 12_000, work: { ...QUIET, callers: 3, ways: { exclusive: 2, aborted: 1 } } },
    lastsMs: LASTS_MS,
    enoughMs: 10_000,
    trouble: refuses,
  },
  /** All processes die. */
  'all killed': {
    settings: { ...PAIR, leaseMs: 250, work: { ...QUIET, callers: 2, ways: { exclusive: 1 } } },
    lastsMs: 0,
    enoughMs: 0,
    trouble: killsAll,
  },
};
