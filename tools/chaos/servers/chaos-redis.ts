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
  /** Data that survive a kill: all; all but the loss of a power failure (see {@link ChaosRedis.losePower}); none. */
  persistence: 'aof' | 'everysec' | 'none';
  /** A wall clock of its own, that can be stepped. */
  clock?: { readonly env: Record<string, string> };
  /** The database of the locks and of {@link ChaosRedis.admin}. @default 0 */
  database?: number;
  /** Additional rights of the user, beyond the documented ones. */
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
/** The interval for reading the length of a log whose end will be lost. */
const NOTED_EVERY_MS = 50;
/** A port without a server. */
const NOBODYS_PORT = 1;

async function spanOf(ms: number): Promise<Span> {
  const from = machineNow();
  await sleep(ms);
  return { from, to: machineNow() };
}

/**
 * One Redis with faults. Each fault is a promise that resolves when the server is as it was before. Faults of different
 * kinds may overlap; two that change the same setting (its memory) may not.
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

  /** The state that {@link restart} with `keepData` restores without a log. */
  async snapshot(): Promise<void> {
    await insist(() => this.admin.bgsave());
    await eventually(async () => {
      if (/^rdb_bgsave_in_progress:1/m.test(await this.admin.info('persistence'))) throw new Error('Saves');
    });
  }

  /**
   * Simulates a power failure: Redis loses the log written during `meanwhile`, and restarts with the rest.
   *
   * @param lastMs loses no more than the last `lastMs` of the log
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

  /** Revokes a right of its user for this time. */
  async refuse(right: string, ms: number): Promise<void> {
    await insist(() => this.admin.call('ACL', 'SETUSER', this.user.name, `-${right}`));
    await sleep(ms);
    await insist(() => this.admin.call('ACL', 'SETUSER', this.user.name, `+${right}`));
  }

  /** Bars its user from logging in for this time, and closes its sessions. */
  async refuseUser(ms: number): Promise<void> {
    await insist(() => this.admin.call('ACL', 'SETUSER', this.user.name, 'off'));
    await insist(() => this.admin.call('CLIENT', 'KILL', 'USER', this.user.name));
    await sleep(ms);
    await insist(() => this.admin.call('ACL', 'SETUSER', this.user.name, 'on'));
  }

  /** Kills it with SIGKILL and refuses connections for this time. Returns the span in which that was certain. */
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

  /** Makes it the replica of a missing server: writes are answered with READONLY. */
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

  /** CLIENT PAUSE: delays all commands; with `WRITE` those that may write, such as all scripts. */
  async pauseClients(ms: number, which: 'ALL' | 'WRITE'): Promise<void> {
    await insist(() => this.admin.call('CLIENT', 'PAUSE', ms, which));
    await sleep(ms);
    await insist(() => this.admin.ping());
  }

  /** Runs a script for this time: other commands are answered with BUSY. */
  async busy(ms: number): Promise<void> {
    await this.#answerBusyAfter(BUSY_AFTER_MS.fault);
    const side = connectAdmin(this.port, { maxRetriesPerRequest: 0 });
    let isAnswered = false;
    try {
      const spinning = side.eval(SPIN, 0, SPIN_AT_MOST_S).catch(() => undefined);
      void spinning.finally(() => (isAnswered = true));
      await sleep(ms);
      // The connection may have been closed while the script is running.
      while (!(await this.#killScript()) || !isAnswered) await sleep(1);
    } finally {
      side.disconnect();
      await this.#answerBusyAfter(BUSY_AFTER_MS.usual);
    }
  }

  /**
   * Kills the server and restarts it with data that take about `ms` to load: commands are answered with LOADING. The
   * time starts when it listens again.
   * @throws Error without kept data
   */
  async loading(ms: number): Promise<void> {
    if (!this.#keepsData) throw new Error('Without persistence there is nothing to load');
    await restartLoading(this.#server, this.admin, ms);
  }

  /** No memory is left, and nothing is evicted: what could need some is answered with OOM. */
  refuseMemory(ms: number): Promise<void> {
    return refuseMemory(this.admin, ms);
  }

  /**
   * Evicts keys as for lack of memory, those of locks first, with `allkeys-random` the fence's too. Returns their
   * number.
   */
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

  /** Returns true if no script is running any more. */
  async #killScript(): Promise<boolean> {
    const reply = await this.admin.script('KILL').catch(String);
    return String(reply).includes('NOTBUSY');
  }
}
