import { breakingFaults, clockFaults, failOver, redisFaults } from '../faults/redis-faults.js';
import { intruder } from '../faults/intruder.js';
import { snapshotFault } from '../faults/snapshot-fault.js';
import { networkFaults } from '../faults/network-faults.js';
import { processFaults } from '../faults/process-faults.js';
import { refusalFaults } from '../faults/refusal-faults.js';
import { ChaosRedis } from '../servers/chaos-redis.js';
import { type FailOver, SentinelSet } from '../../../test/support/redis/sentinel-set.js';
import { SteppedClock } from '../servers/stepped-clock.js';
import { standalone } from '../world/standalone.js';
import type { Stage } from './chapter.js';

/**
 * The database of the locks, except in a cluster, which has 0 only. It adds one command to the start of every
 * connection.
 */
export const DATABASE = 5;

/** One Redis that keeps its data: here everything is promised. */
export async function steady(): Promise<Stage> {
  const redis = await ChaosRedis.start({ persistence: 'aof', database: DATABASE });
  const all = [...processFaults, ...networkFaults, ...redisFaults(redis), intruder];
  const faults = all.filter(({ needsClock }) => !needsClock || SteppedClock.isSupported);
  return {
    server: standalone(redis),
    faults,
    ...(SteppedClock.isSupported && { newClock: () => SteppedClock.create() }),
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

/** One Redis whose wall clock is set back, again and again. */
export async function setBack(): Promise<Stage> {
  const clock = SteppedClock.create();
  const redis = await ChaosRedis.start({ persistence: 'aof', clock, database: DATABASE });
  return {
    server: standalone(redis),
    faults: clockFaults(clock),
    // A lock without a release lasts longer by the time that the clock was set back.
    settle: () => clock.step(-clock.offsetMs),
    [Symbol.asyncDispose]: () => end(redis, clock),
  };
}

/** One Redis that loses its data, or whose clock jumps ahead of all leases: here only the fencing tokens protect. */
export async function forgetful(): Promise<Stage> {
  const clock = SteppedClock.isSupported ? SteppedClock.create() : undefined;
  const redis = await ChaosRedis.start({ persistence: 'none', database: DATABASE, ...(clock && { clock }) });
  return {
    server: standalone(redis),
    faults: breakingFaults(redis, clock),
    [Symbol.asyncDispose]: () => end(redis, clock),
  };
}

/** One Redis that comes back as it was a moment ago, and grants nothing until all leases from before have ended. */
export async function outdated(leaseMs: number, { operators }: { operators: boolean }): Promise<Stage> {
  const redis = await ChaosRedis.start({ persistence: 'none', rights: ['+info', '+config|get'], database: DATABASE });
  // An operator ends a lease that remains valid for its holder until the next renewal: up to a lease.
  const restartQuarantineMs = operators ? 2 * leaseMs : leaseMs;
  return {
    server: standalone(redis, { restartQuarantineMs }),
    faults: [snapshotFault(redis, restartQuarantineMs, operators)],
    // A claim that is forgotten: "while the primary keeps its data".
    unpromised: ['ticks'],
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

/** One Redis that keeps its data, and refuses everything for a moment. */
export async function refusing(): Promise<Stage> {
  const redis = await ChaosRedis.start({ persistence: 'none', database: DATABASE });
  return {
    server: standalone(redis),
    faults: refusalFaults(redis),
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

/** A primary and its replica behind a sentinel, with failovers. With a lagging replica, recent writes get lost. */
export async function failingOver({ lagging }: FailOver): Promise<Stage> {
  const set = await SentinelSet.start({ database: DATABASE });
  return {
    server: {
      ports: [],
      optionsAt: () => ({ connection: set.connection }),
      get admins() {
        return [set.admin()];
      },
    },
    faults: [failOver(set, lagging)],
    [Symbol.asyncDispose]: () => set[Symbol.asyncDispose](),
  };
}

async function end(redis: ChaosRedis, clock: SteppedClock | undefined): Promise<void> {
  await redis[Symbol.asyncDispose]();
  clock?.[Symbol.dispose]();
}
