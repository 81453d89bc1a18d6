import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Replaced } from '../../../test/support/process/program.js';
import { startRedis } from '../../../test/support/redis/redis-server.js';
import { SeededRandom } from '../../../test/support/world/seeded-random.js';
import type { Omission } from '../checkers/ticks/missed-ticks.js';
import { CronFleet, type CronWorker } from './cron-fleet.js';
import { type CronResult, judge, judgeTicks } from './cron-result.js';
import { LEASE_MS, REAL_JOBS } from './real-jobs.js';

export interface CronRunOptions {
  /** Time for which the fleet fires ticks, once all its processes are ready. */
  readonly seconds: number;
  /** Decides the faults and the error of each clock, but not their exact times. */
  readonly seed: number;
  /** A broken file of the library that runs. @default none */
  readonly replaced?: Replaced;
  /** Ends when a tick is seen to start twice, or two runs overlap: for mutants. @default false */
  readonly untilFoundOut?: boolean;
  /** The number of processes. @default 4 */
  readonly workers?: number;
}

/**
 * By how much the clocks are ahead, at least and at most, one after another. Some nearly agree, so that their processes claim
 * at the same time; the others are off by more than a lease.
 */
const SKEWS_MS = [
  [-20, 20],
  [800, 1_200],
  [-20, 20],
  [-1_200, -800],
] as const;
/** The longest time between two faults. */
const CALM_MS = 500;
const MAX_PAUSE_MS = 2.5 * LEASE_MS;
/** For how long a tick has to look wrong. */
const CERTAIN_AFTER_MS = 1_000;

/**
 * Possible violations in a running fleet. The logs are read one after another, and a kill is noticed a moment later, so
 * only a suspicion that lasts is a violation.
 */
class Suspicions {
  #since = new Map<string, number>();

  /** Returns true if one of these has persisted for a while. */
  last(suspicions: readonly Omission[]): boolean {
    const now = performance.now();
    const names = suspicions.map(({ rule, what }) => `${rule} ${what}`);
    this.#since = new Map(names.map((name) => [name, this.#since.get(name) ?? now]));
    return names.some((name) => now - this.#since.get(name)! >= CERTAIN_AFTER_MS);
  }
}

/** Injects faults into a fleet. */
class Faults {
  readonly counts = { kills: 0, pauses: 0, connectionKills: 0 };
  readonly #underWay = new Set<Promise<void>>();

  constructor(
    private readonly fleet: CronFleet,
    private readonly redis: Redis,
    private readonly random: SeededRandom,
  ) {}

  /** Ends after `ms`, or as soon as `isOver` returns true. */
  async happenFor(ms: number, isOver: () => boolean): Promise<void> {
    const endsAt = performance.now() + ms;
    while (performance.now() < endsAt && !isOver()) {
      const fault = this.#next();
      fault.catch(() => {}); // raised below
      this.#underWay.add(fault);
      await sleep(this.random.fraction() * CALM_MS);
    }
    await Promise.all(this.#underWay);
  }

  async #next(): Promise<void> {
    const { awake } = this.fleet;
    const victim = awake[Math.floor(this.random.fraction() * awake.length)];
    const kind = Math.floor(this.random.fraction() * 8);
    if (kind < 2) return this.#killConnections(kind === 0 ? 'pubsub' : 'normal');
    // At least one keeps running.
    if (!victim || awake.length < 2) return;
    return kind < 6 ? this.#pause(victim) : this.#replace(victim);
  }

  async #killConnections(type: 'normal' | 'pubsub'): Promise<void> {
    this.counts.connectionKills++;
    await this.redis.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
  }

  async #pause(victim: CronWorker): Promise<void> {
    this.counts.pauses++;
    victim.pause();
    await sleep(this.random.fraction() * MAX_PAUSE_MS);
    victim.continue();
  }

  async #replace(victim: CronWorker): Promise<void> {
    this.counts.kills++;
    await victim.kill();
    await this.fleet.join();
  }
}

/**
 * Fires jobs every few milliseconds in processes on their own Redis, while they are suspended, killed, replaced and cut
 * off. Judges their logs.
 *
 * @throws if a process can't be started, exits by itself, or doesn't exit
 */
export async function runCron({
  seconds,
  seed,
  replaced,
  workers = 4,
  untilFoundOut = false,
}: CronRunOptions): Promise<CronResult> {
  const began = performance.now();
  const random = new SeededRandom(seed);
  const server = await startRedis();
  const redis = new Redis(server.url);
  try {
    let skews = 0;
    const skewMs = (): number => {
      const [least, most] = SKEWS_MS[skews++ % SKEWS_MS.length]!;
      return Math.round(least + random.fraction() * (most - least));
    };
    await using fleet = new CronFleet({ url: server.url, keyPrefix: 'cron' }, skewMs, replaced);
    await fleet.join(workers);
    const faults = new Faults(fleet, redis, random);
    const suspicions = new Suspicions();
    const isFoundOut = (): boolean => untilFoundOut && suspicions.last(judgeTicks(fleet.history().calls, REAL_JOBS));
    await faults.happenFor(seconds * 1_000, isFoundOut);
    await fleet.end();
    const judgement = judge(fleet.history().calls, REAL_JOBS);
    // They log errors only, and faults like these are none.
    if (fleet.output !== '') judgement.violations.push({ rule: 'unexpected output', what: fleet.output });
    return {
      seed,
      ...judgement,
      ...faults.counts,
      tookMs: Math.round(performance.now() - began),
    };
  } finally {
    redis.disconnect();
    await server.stop();
  }
}
