import type { Redis, RedisOptions } from 'ioredis';
import { LockStoreError } from '../../kernel/store/store-error.js';
import { SYSTEM_CLOCK } from '../../kernel/util/clock.js';
import type { ScriptCall, ScriptSender } from '../script/script.js';
import { ConnectionTrouble, type SentinelReasons } from './connection-trouble.js';
import { isNotWritten, toStoreError } from '../script/failures.js';
import type { OwnClients } from './own-clients.js';
import { mendQuirks, reconnect } from './ioredis-quirks.js';

/** The number of keys that Redis visits in one step: few enough that no other client waits long. */
const KEYS_AT_ONCE = 1_000;

export interface ServerOptions {
  readonly clients?: OwnClients | undefined;
  /**
   * Called when the server reports that it is a replica now. The connection is then replaced, to find the primary. A
   * node of a cluster needs none: there, other nodes know which node has the slot.
   */
  readonly onDemoted?: () => void;
  readonly reasonOfSentinel?: SentinelReasons;
}

/** The connection for commands to one server, or to the primary that sentinels name. It reconnects by itself. */
export class ServerConnection {
  readonly client: Redis;
  readonly #trouble: ConnectionTrouble;
  readonly #listeners: (() => void)[] = [];
  /** `true` while the connection is being replaced, because another server is the primary. */
  #isLeaving = false;
  #connectedAt = -Infinity;

  /** @param model a client whose options have the address */
  constructor(model: Redis, safeOptions: RedisOptions, serverOptions: ServerOptions = {}) {
    const { clients, onDemoted, reasonOfSentinel } = serverOptions;
    const options: RedisOptions = {
      ...safeOptions,
      // Reconnect to find the primary, but do not repeat the command. And reconnect only once, not for each reply:
      // ioredis would end the same socket again and again, until Node warns of too many listeners.
      reconnectOnError: ({ message }) => {
        if (!onDemoted || this.#isLeaving || !message.includes('READONLY')) return false;
        this.#isLeaving = true;
        onDemoted();
        return 1;
      },
    };
    this.client = model.duplicate(options);
    mendQuirks(this.client);
    clients?.add(this.client);
    this.client.on('connect', () => {
      this.#isLeaving = false;
      this.#connectedAt = SYSTEM_CLOCK.now();
    });
    this.#trouble = new ConnectionTrouble(this.client, reasonOfSentinel);
    this.client.on('ready', () => this.announce());
  }

  connect(): void {
    // The error is kept as the reason why commands cannot be sent.
    this.client.connect().catch(() => {});
  }

  reconnect(): void {
    this.#isLeaving = true;
    reconnect(this.client);
  }

  get isConnected(): boolean {
    return this.client.status === 'ready';
  }

  onConnected(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** @throws LockStoreError while there is no connection: the script was not sent */
  sendIfConnected<T>(scripts: ScriptSender, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T> {
    return scripts.send(this.ready(), call, fail);
  }

  /** The client for commands. @throws LockStoreError while there is no connection: the command was not sent */
  ready(): Redis {
    const { trouble } = this;
    if (trouble) throw trouble;
    return this.client;
  }

  /** Yields the matching keys of this server, step by step. A key may come twice. @throws LockStoreError */
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

  /** See {@link Connection.trusts}. A connection leads to one run of a server. */
  trusts(scripts: ScriptSender, fence: string, sentAt: number): boolean {
    return sentAt >= this.#connectedAt && (scripts.trusts?.(this.client, fence) ?? true);
  }

  get trouble(): LockStoreError | undefined {
    return this.client.status === 'ready' ? undefined : this.#trouble.error;
  }

  /** Turns the error of a command into one with the progress of the command, and the reason. */
  explain(error: unknown): LockStoreError {
    if (isNotWritten(error)) return new LockStoreError('notExecuted', this.describeTrouble());
    const sorted = toStoreError(error);
    // ioredis drops this connection to look for the primary elsewhere. Until there is a new one, this is the reason.
    if (sorted.message.startsWith('READONLY')) this.note(sorted);
    return sorted;
  }

  describeTrouble(): string {
    return this.#trouble.describe();
  }

  close(): void {
    this.client.disconnect();
  }

  /** Keeps this error as the reason until the connection works again. */
  protected note(error: LockStoreError): void {
    this.#trouble.note(error);
  }

  /** Calls the listeners, if commands can be sent. */
  protected announce(): void {
    if (this.isConnected) for (const listener of this.#listeners) listener();
  }
}
