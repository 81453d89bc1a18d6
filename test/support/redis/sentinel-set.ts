import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis, RedisOptions } from 'ioredis';
import { eventually } from '../expect/eventually.js';
import { type RedisServer, startRedisServer } from '../../../scripts/redis-server.mjs';
import { documentedUser, documentedUserArgs } from './lock-user.js';
import { connectAdmin, insist } from './admin-client.js';
import { ReplicatedRedis } from './replicated-redis.js';

/** As the sentinels call the primary. */
const NAME = 'locks';
/** A silent primary counts as down after this time. Usually long: a busy machine must not cause a failover. */
const DOWN_AFTER_MS = { failOver: 300, usual: 60_000 };
const CONFIG = (port: number, password: string | undefined): string => `
${password === undefined ? '' : `requirepass ${password}`}
sentinel monitor ${NAME} 127.0.0.1 ${port} 1
sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS.usual}
sentinel failover-timeout ${NAME} 5000
`;
/** Makes it check its servers more often, and tolerate a short stall of the machine. Since Redis 7. */
const ATTENTION = ['info-period', '200', 'tilt-trigger', '20000', 'tilt-period', '1000'];
/** It makes an old primary that lives a replica when it has seen it as a primary for four such periods: usually after 8 s. */
const DEMOTION_PERIOD_MS = { soon: 100, later: 60_000 };
/** Written last, to see whether the new primary has it. Not under a lock prefix. */
const LAST_WRITE = 'chaos-last-write';
const LAG_MS = 300;
const PATIENCE_MS = 30_000;

export interface FailOver {
  /** `true` if the new primary lacks the last writes of the old one. */
  lagging: boolean;
  /** Called right before the primary dies, when no data reaches the replica any more. Only with `lagging`. */
  lastWords?: () => Promise<unknown>;
}

export interface SentinelSetOptions {
  /** The password for the sentinel. */
  sentinelPassword?: string;
  /** The database of the locks and of {@link SentinelSet.admin}. @default 0 */
  database?: number;
  /** Additional rights of the user, beyond the documented ones. */
  rights?: readonly string[];
}

/** A primary, its replica, and a sentinel, which makes the replica the primary when that dies. */
export class SentinelSet implements AsyncDisposable {
  /** The silence after which the sentinel begins the failover. */
  static readonly downAfterMs = DOWN_AFTER_MS.failOver;
  readonly user = documentedUser();
  readonly #sentinel: RedisServer;
  readonly #observer: Redis;
  #primary: ReplicatedRedis;
  #replica: ReplicatedRedis;
  #writes = 0;
  #isMixedUp = false;

  private constructor(
    primary: ReplicatedRedis,
    replica: ReplicatedRedis,
    sentinel: RedisServer,
    private readonly options: SentinelSetOptions,
  ) {
    this.#primary = primary;
    this.#replica = replica;
    this.#sentinel = sentinel;
    this.#observer = connectAdmin(sentinel.port, { enableReadyCheck: false, password: options.sentinelPassword });
  }

  static async start(options: SentinelSetOptions = {}): Promise<SentinelSet> {
    const { sentinelPassword, database, rights = [] } = options;
    const args = [...documentedUserArgs(), ...rights, ...(database ? ['+select'] : [])];
    const startOne = () => ReplicatedRedis.start(args, database);
    const [primary, replica] = await Promise.all([startOne(), startOne()]);
    await replica.follow(primary);
    const config = CONFIG(primary.port, sentinelPassword);
    const sentinel = await startRedisServer({ config, args: ['--sentinel'] });
    const set = new SentinelSet(primary, replica, sentinel, options);
    await set.#observer.call('SENTINEL', 'DEBUG', ...ATTENTION).catch(() => undefined);
    await set.#untilReady();
    return set;
  }

  /** The `connection` for the lock module. */
  get connection(): RedisOptions {
    const { sentinelPassword, database } = this.options;
    return {
      sentinels: [{ host: '127.0.0.1', port: this.#sentinel.port }],
      name: NAME,
      username: this.user.name,
      password: this.user.password,
      ...(sentinelPassword !== undefined && { sentinelPassword }),
      ...(database !== undefined && { db: database }),
    };
  }

  /** The default user of the present primary. */
  admin(): Redis {
    return this.#primary.admin;
  }

  /**
   * Kills the primary, with its replica up to date, or without its writes of the last 300 ms and more. Resolves when the
   * other one is the primary, and the old one its replica with the same data. Gives for how long there was no primary.
   * @throws Error when the new primary has what it should lack, or the other way round; or when an earlier one has failed
   */
  async failOver({ lagging, lastWords }: FailOver): Promise<number> {
    if (this.#isMixedUp) throw new Error('An earlier fail-over has failed: nobody knows which one is the primary');
    const [old, next] = [this.#primary, this.#replica];
    this.#isMixedUp = true;
    const write = String(++this.#writes);
    if (lagging) await next.stopFollowing();
    await insist(() => old.admin.set(LAST_WRITE, write));
    if (lagging) {
      await lastWords?.();
      await sleep(LAG_MS);
    } else {
      await insist(() => old.holdWrites());
      await next.untilCaughtUp(old);
    }
    // Only now: if the machine stalled for this time, the sentinel would count a live primary as down.
    await this.#downAfter(DOWN_AFTER_MS.failOver);
    const from = performance.now();
    await old.kill();
    await this.#untilPromoted(next);
    const unavailableMs = performance.now() - from;
    const hasWrite = (await next.admin.get(LAST_WRITE)) === write;
    await this.#downAfter(DOWN_AFTER_MS.usual);
    await old.restartFollowing(next);
    [this.#primary, this.#replica] = [next, old];
    await this.#untilReady();
    this.#isMixedUp = false;
    await insist(() => next.admin.unlink(LAST_WRITE));
    if (hasWrite === lagging) throw new Error(`The new primary ${lagging ? 'has' : 'lacks'} the last write of the old`);
    return unavailableMs;
  }

  /**
   * SENTINEL FAILOVER: the replica becomes the primary while the old one lives and still acts as a primary, until the
   * sentinel demotes it. Resolves when the old one is the replica.
   *
   * @param meanwhile called while there are two of them
   */
  async switchOver(meanwhile: (old: Redis, next: Redis) => Promise<unknown> = async () => {}): Promise<void> {
    const [old, next] = [this.#primary, this.#replica];
    await this.#demoteAfter(DEMOTION_PERIOD_MS.later);
    await insist(() => this.#observer.call('SENTINEL', 'FAILOVER', NAME));
    await this.#untilPromoted(next);
    [this.#primary, this.#replica] = [next, old];
    try {
      await meanwhile(old.admin, next.admin);
    } finally {
      await this.#demoteAfter(DEMOTION_PERIOD_MS.soon);
    }
    await this.#untilReady();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#observer.disconnect();
    await this.#sentinel.stop();
    await Promise.all([this.#primary, this.#replica].map((server) => server[Symbol.asyncDispose]()));
  }

  async #downAfter(ms: number): Promise<void> {
    await this.#observer.call('SENTINEL', 'SET', NAME, 'down-after-milliseconds', ms);
  }

  async #demoteAfter(ms: number): Promise<void> {
    await this.#observer.call('SENTINEL', 'DEBUG', 'publish-period', ms);
  }

  async #untilPromoted(next: ReplicatedRedis): Promise<void> {
    await eventually(async () => {
      const [, port] = (await this.#observer.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as string[];
      const isPromoted = Number(port) === next.port && (await next.isPrimary());
      if (!isPromoted) throw new Error(`The primary is still the one on port ${port}`);
    }, PATIENCE_MS);
  }

  /** The replica has everything, and the sentinel has noticed: it would make it the primary. */
  async #untilReady(): Promise<void> {
    await this.#replica.untilCaughtUp(this.#primary);
    await eventually(async () => {
      const replicas = (await this.#observer.call('SENTINEL', 'REPLICAS', NAME)) as (string[] | object)[];
      const seen = fields(replicas[0]);
      const isReady = seen.flags === 'slave' && seen['master-link-status'] === 'ok';
      if (!isReady) throw new Error(`The sentinel sees no sound replica: ${JSON.stringify(seen)}`);
    }, PATIENCE_MS);
  }
}

/** A list of names and values, or, in the newer protocol, an object. */
function fields(reply: string[] | object | undefined): Partial<Record<string, string>> {
  if (!Array.isArray(reply)) return { ...reply };
  const entries = reply.flatMap((name, i) => (i % 2 === 0 ? [[name, reply[i + 1]!] as const] : []));
  return Object.fromEntries(entries);
}
