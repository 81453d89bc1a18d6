import { statSync, truncateSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { type RedisServer, startRedisServer } from '../../../scripts/redis-server.mjs';
import { documentedUser, documentedUserArgs } from '../../../test/support/redis/lock-user.js';
import { connectAdmin, insist } from '../../../test/support/redis/admin-client.js';
import { newestLogOf } from '../../../test/support/redis/append-only-log.js';
import { SYNC_AT_ONCE } from '../../../test/support/redis/replicated-redis.js';
import { eventually } from '../../../test/support/expect/eventually.js';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { Span } from '../checkers/spans.js';
import { restartLoading } from './loading-fault.js';
import { evict, type EvictingPolicy, refuseMemory } from './memory-faults.js';

export interface ChaosRedisOptions {
  /** What outlives a kill: all; all but what a power failure takes (see {@link ChaosRedis.losePower}); nothing. */
  persistence: 'aof' | 'everysec' | 'none';
  /** A wall clock of its own, that can be stepped. */
  clock?: { readonly env: Record<string, string> };
  /** Where the locks are, and {@link ChaosRedis.admin}. @default 0 */
  database?: number;
  /** What the user needs beside what the documentation says of every Redis. */
  rights?: readonly string[];
}

/**
 * With `everysec` Redis may hold back a write for up to two seconds after it answered, while the disk is busy; a kill
 * loses it. With `no` it writes before it answers and leaves the flushing to the system, which a kill does not stop.
 */
const PERSISTENCE = {
  aof: ['--appendonly', 'yes', '--appendfsync', 'no'],
  everysec: ['--appendonly', 'yes', '--appendfsync', 'everysec'],
  none: [],
};
/** A script that runs for longer makes Redis answer BUSY. (Since Redis 7 it is also called busy-reply-threshold.) */
const BUSY_AFTER = 'lua-time-limit';
const BUSY_AFTER_MS = { usual: 5_000, fault: 5 };
/** Until SCRIPT KILL; should that not get through, for a time at most. A step of the wall clock ends it too. */
const SPIN = `
local from = tonumber(redis.call('TIME')[1])
repeat local spun = tonumber(redis.call('TIME')[1]) - from until spun < 0 or spun > tonumber(ARGV[1])
`;
const SPIN_AT_MOST_S = 20;
/** How often the length of a log is looked at of which the end will be lost. */
const NOTED_EVERY_MS = 50;
/** Nobody listens there. */
const NOBODYS_PORT = 1;

async function spanOf(ms: number): Promise<Span> {
  const from = machineNow();
  await sleep(ms);
  return { from, to: machineNow() };
}

/**
 * One Redis that can be mistreated. Each fault is a promise that is kept when the fault is over and the server as it
 * was before. Faults of different kinds may overlap; two that change the same setting (its memory) may not.
 */
export class ChaosRedis implements AsyncDisposable {
  /** The default user, with all rights; its commands wait until the server is back. */
  readonly admin: Redis;
  readonly port: number;
  /** Users with the rights that the documentation recommends. */
  readonly user = documentedUser();
  readonly #server: RedisServer;
  readonly #keepsData: boolean;
  readonly #database: number;

  private constructor(server: RedisServer, { persistence, database = 0 }: ChaosRedisOptions) {
    this.#server = server;
    this.#keepsData = persistence !== 'none';
    this.#database = database;
    this.port = server.port;
    this.admin = connectAdmin(server.port, { db: database });
  }

  static async start(options: ChaosRedisOptions): Promise<ChaosRedis> {
    const { persistence, clock, database, rights = [] } = options;
    const own = [...rights, ...(database ? ['+select'] : [])];
    const args = [...documentedUserArgs(), ...own, ...SYNC_AT_ONCE, ...PERSISTENCE[persistence]];
    return new ChaosRedis(await startRedisServer({ args, env: clock?.env }), options);
  }

  /** For an application: as the user with the least rights. */
  get url(): string {
    return this.urlAt(this.port);
  }

  /** The same through a proxy. */
  urlAt(port: number): string {
    return `redis://${this.user.name}:${this.user.password}@127.0.0.1:${port}/${this.#database}`;
  }

  /** SIGKILL. Over when {@link restart} is. */
  kill(): Promise<void> {
    return this.#server.kill();
  }

  /** On the same port; with its data only when it keeps them, and they are not to be lost. */
  restart({ keepData = this.#keepsData } = {}): Promise<void> {
    return this.#server.restart({ keepData });
  }

  /** What {@link restart} with `keepData` brings back where there is no log. */
  async snapshot(): Promise<void> {
    await insist(() => this.admin.bgsave());
    await eventually(async () => {
      if (/^rdb_bgsave_in_progress:1/m.test(await this.admin.info('persistence'))) throw new Error('Saves');
    });
  }

  /**
   * A power failure: what has been logged meanwhile is lost, and Redis comes back with the rest.
   *
   * @param lastMs of what has been logged, no more than this is lost
   */
  async losePower(meanwhile: () => Promise<unknown>, lastMs = Infinity): Promise<void> {
    const log = newestLogOf(this.#server);
    const sizes: { at: number; size: number }[] = [];
    const note = (): unknown => sizes.push({ at: performance.now(), size: statSync(log).size });
    note();
    const notes = setInterval(note, NOTED_EVERY_MS);
    await meanwhile().finally(() => clearInterval(notes));
    await this.kill();
    const from = performance.now() - lastMs;
    truncateSync(log, (sizes.find(({ at }) => at >= from) ?? sizes.at(-1)!).size);
    await this.restart();
  }

  /** For so long its user has not got this right. */
  async refuse(right: string, ms: number): Promise<void> {
    await insist(() => this.admin.call('ACL', 'SETUSER', this.user.name, `-${right}`));
    await sleep(ms);
    await insist(() => this.admin.call('ACL', 'SETUSER', this.user.name, `+${right}`));
  }

  /** For so long its user may not log in, and is logged in nowhere. */
  async refuseUser(ms: number): Promise<void> {
    await insist(() => this.admin.call('ACL', 'SETUSER', this.user.name, 'off'));
    await insist(() => this.admin.call('CLIENT', 'KILL', 'USER', this.user.name));
    await sleep(ms);
    await insist(() => this.admin.call('ACL', 'SETUSER', this.user.name, 'on'));
  }

  /** SIGKILL, and for so long nobody is there: connections are refused. Gives when that certainly was so. */
  async absent(ms: number): Promise<Span> {
    await this.kill();
    const span = await spanOf(ms);
    await this.restart();
    return span;
  }

  /** SIGSTOP, then SIGCONT: connections stay open and nothing answers. Gives when that certainly was so. */
  async pause(ms: number): Promise<Span> {
    await this.#server.pause();
    const span = await spanOf(ms);
    await this.#server.resume();
    return span;
  }

  /** It becomes the replica of nobody: whatever writes is answered with READONLY. */
  async readOnly(ms: number): Promise<void> {
    await insist(() => this.admin.replicaof('127.0.0.1', NOBODYS_PORT));
    await sleep(ms);
    await insist(() => this.admin.replicaof('NO', 'ONE'));
  }

  /** Closes all connections of a type but the one of {@link admin}. Gives how many. */
  killClients(type: 'normal' | 'pubsub'): Promise<number> {
    return insist(async () => Number(await this.admin.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes')));
  }

  /** Forgets all scripts, again and again. Gives how often. */
  async flushScripts(forMs: number): Promise<number> {
    const until = performance.now() + forMs;
    let times = 0;
    do {
      await insist(() => this.admin.script('FLUSH'));
      times++;
      await sleep(1);
    } while (performance.now() < until);
    return times;
  }

  /** CLIENT PAUSE: Redis lives, and lets commands wait; with `WRITE` those that may write, as all scripts. */
  async pauseClients(ms: number, which: 'ALL' | 'WRITE'): Promise<void> {
    await insist(() => this.admin.call('CLIENT', 'PAUSE', ms, which));
    await sleep(ms);
    await insist(() => this.admin.ping());
  }

  /** Runs a script for so long: other commands are answered with BUSY. */
  async busy(ms: number): Promise<void> {
    await this.#answerBusyAfter(BUSY_AFTER_MS.fault);
    const side = connectAdmin(this.port, { maxRetriesPerRequest: 0 });
    let isAnswered = false;
    try {
      const spinning = side.eval(SPIN, 0, SPIN_AT_MOST_S).catch(() => undefined);
      void spinning.finally(() => (isAnswered = true));
      await sleep(ms);
      // The connection may have been closed while the script goes on.
      while (!(await this.#killScript()) || !isAnswered) await sleep(1);
    } finally {
      side.disconnect();
      await this.#answerBusyAfter(BUSY_AFTER_MS.usual);
    }
  }

  /**
   * Kills the server and brings it back with its data, which it needs about so long to read: commands are answered with
   * LOADING. Its clock starts when it listens again.
   * @throws Error where no data are kept
   */
  async loading(ms: number): Promise<void> {
    if (!this.#keepsData) throw new Error('Without persistence there is nothing to load');
    await restartLoading(this.#server, this.admin, ms);
  }

  /** No memory is left, and nothing is evicted: what could need some is answered with OOM. */
  refuseMemory(ms: number): Promise<void> {
    return refuseMemory(this.admin, ms);
  }

  /** Keys disappear for want of memory, those of locks first, with `allkeys-random` that of the fence too. Gives how many. */
  evict(ms: number, policy: EvictingPolicy = 'volatile-ttl'): Promise<number> {
    return evict(this.admin, ms, policy);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.admin.disconnect();
    await this.#server.stop();
  }

  async #answerBusyAfter(ms: number): Promise<void> {
    await insist(() => this.admin.config('SET', BUSY_AFTER, String(ms)));
  }

  /** Whether no script runs any more. */
  async #killScript(): Promise<boolean> {
    const reply = await this.admin.script('KILL').catch(String);
    return String(reply).includes('NOTBUSY');
  }
}
