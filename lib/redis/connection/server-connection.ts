import type { Redis, RedisOptions } from 'ioredis';
import { LockStoreError } from '../../core/store/lock-store.js';
import type { ScriptCall, ScriptSender } from '../script/script.js';
import { ConnectionTrouble, type SentinelReasons } from './connection-trouble.js';
import { isNotWritten, toStoreError } from '../script/failures.js';
import type { OwnClients } from './own-clients.js';
import { mendQuirks, reconnect } from './ioredis-quirks.js';

/** How many keys Redis looks at in one step: few enough that no other client waits long. */
const KEYS_AT_ONCE = 1_000;

export interface ServerOptions {
  /** Where its clients are counted. */
  readonly clients?: OwnClients | undefined;
  /**
   * Called when it says that it is a replica now: the connection is made anew, to find the primary. Not for a node of a cluster,
   * where others say who has the slot.
   */
  readonly onDemoted?: () => void;
  readonly reasonOfSentinel?: SentinelReasons;
}

/** The connection for commands to one server, or to the primary that sentinels name. It connects anew by itself. */
export class ServerConnection {
  readonly client: Redis;
  readonly #trouble: ConnectionTrouble;
  readonly #listeners: (() => void)[] = [];

  /** @param model whose options say where the server is */
  constructor(model: Redis, safeOptions: RedisOptions, serverOptions: ServerOptions = {}) {
    const { clients, onDemoted, reasonOfSentinel } = serverOptions;
    let isLeaving = false;
    const options: RedisOptions = {
      ...safeOptions,
      // Reconnect to find the primary, but do not send the command again; and once, not for each reply of those under way: ioredis
      // would end the same socket again and again, until Node warns of its listeners.
      reconnectOnError: ({ message }) => {
        if (!onDemoted || isLeaving || !message.includes('READONLY')) return false;
        isLeaving = true;
        onDemoted();
        return 1;
      },
    };
    this.client = model.duplicate(options);
    mendQuirks(this.client);
    clients?.add(this.client);
    this.client.on('connect', () => (isLeaving = false));
    this.#trouble = new ConnectionTrouble(this.client, reasonOfSentinel);
    this.client.on('ready', () => this.announce());
  }

  /** Begins to connect, and goes on trying by itself until it is closed. */
  connect(): void {
    // What goes wrong is kept, and told to whoever sends a command meanwhile.
    this.client.connect().catch(() => {});
  }

  /** Another server is the primary now. */
  reconnect(): void {
    reconnect(this.client);
  }

  get isConnected(): boolean {
    return this.client.status === 'ready';
  }

  /** Calls back whenever there is a new connection. */
  onConnected(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Runs one script.
   *
   * @param fail what to make of what ioredis rejects with
   * @throws LockStoreError while there is no connection: the script was not sent
   */
  sendIfConnected<T>(scripts: ScriptSender, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T> {
    return scripts.send(this.ready(), call, fail);
  }

  /** The client for commands. @throws LockStoreError while there is no connection: the command was not sent */
  ready(): Redis {
    const { trouble } = this;
    if (trouble) throw trouble;
    return this.client;
  }

  /** The keys of this server that match, step by step; some of them may come twice. @throws LockStoreError */
  async *scan(pattern: string): AsyncGenerator<string[]> {
    let cursor = '0';
    do {
      const redis = this.ready();
      const [next, keys] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_AT_ONCE).catch((error: unknown) => {
        throw this.explain(error);
      });
      yield keys;
      cursor = next;
    } while (cursor !== '0');
  }

  /** Why no command can be sent; nothing where it can. */
  get trouble(): LockStoreError | undefined {
    return this.client.status === 'ready' && !this.#trouble.isRefused ? undefined : this.#trouble.error;
  }

  /** Sorts what a command was rejected with, in words that say why. */
  explain(error: unknown): LockStoreError {
    if (isNotWritten(error)) return new LockStoreError('notExecuted', this.describeTrouble());
    const sorted = toStoreError(error);
    // ioredis breaks this connection to look for the primary elsewhere; until it is back, this is the reason.
    if (sorted.message.startsWith('READONLY')) this.#trouble.note(sorted);
    return sorted;
  }

  describeTrouble(): string {
    return this.#trouble.describe();
  }

  close(): void {
    this.client.disconnect();
  }

  /** Tells the listeners, if commands can be sent. */
  protected announce(): void {
    if (this.isConnected) for (const listener of this.#listeners) listener();
  }
}
