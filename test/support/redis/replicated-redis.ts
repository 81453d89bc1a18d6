import type { Redis } from 'ioredis';
import { eventually } from '../expect/eventually.js';
import { type RedisServer, startRedisServer } from '../../../scripts/redis-server.mjs';
import { connectAdmin } from './admin-client.js';

/** For a primary: a replica that comes has everything at once, and not only after the usual 5 s. */
export const SYNC_AT_ONCE = ['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'];
/** A port without a server. */
const NOWHERE = 1;
/** Until the primary is killed. */
const HOLD_WRITES_MS = 60_000;
const PATIENCE_MS = 30_000;

/** One of the two servers of a {@link SentinelSet}: now the primary, now the replica. */
export class ReplicatedRedis implements AsyncDisposable {
  readonly admin: Redis;
  readonly #server: RedisServer;

  private constructor(server: RedisServer, database: number) {
    this.#server = server;
    this.admin = connectAdmin(server.port, { db: database });
  }

  static async start(args: string[], database = 0): Promise<ReplicatedRedis> {
    return new ReplicatedRedis(await startRedisServer({ args: [...SYNC_AT_ONCE, ...args] }), database);
  }

  get port(): number {
    return this.#server.port;
  }

  get pid(): number {
    return this.#server.pid;
  }

  async follow(primary: { readonly port: number }): Promise<void> {
    await this.admin.replicaof('127.0.0.1', primary.port);
  }

  /** From the reply on, no write of the primary arrives any more. */
  async stopFollowing(): Promise<void> {
    await this.admin.replicaof('127.0.0.1', NOWHERE);
  }

  /** Lets writes wait, for as long as this server lives. */
  async holdWrites(): Promise<void> {
    await this.admin.call('CLIENT', 'PAUSE', HOLD_WRITES_MS, 'WRITE');
  }

  kill(): Promise<void> {
    return this.#server.kill();
  }

  /** After a kill, and with nothing but what the primary has. */
  restartFollowing(primary: ReplicatedRedis): Promise<void> {
    return this.#server.restart({ args: ['--replicaof', '127.0.0.1', `${primary.port}`] });
  }

  /** After a kill, and with nothing. */
  restart(): Promise<void> {
    return this.#server.restart();
  }

  /** Resolves when it has had all the primary has now. */
  async untilCaughtUp(primary: ReplicatedRedis): Promise<void> {
    const offset = Number(await primary.#replication('master_repl_offset'));
    await eventually(async () => {
      const [link, own] = [await this.#replication('master_link_status'), await this.#replication('slave_repl_offset')];
      if (link !== 'up' || Number(own) < offset) throw new Error(`The replica is at ${own} of ${offset}, link ${link}`);
    }, PATIENCE_MS);
  }

  async isPrimary(): Promise<boolean> {
    return (await this.#replication('role')) === 'master';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.admin.disconnect();
    await this.#server.stop();
  }

  async #replication(name: string): Promise<string | undefined> {
    return new RegExp(`^${name}:(.*)\r$`, 'm').exec(await this.admin.info('replication'))?.[1];
  }
}
