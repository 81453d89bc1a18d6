import type { Redis } from 'ioredis';
import type { LockStoreError } from '../../core/store/store-error.js';
import type { Connection, LockServer } from '../connection/connection.js';
import type { ScriptCall, ScriptSender } from '../script/script.js';
import type { Durability } from '../durability/durability.js';
import type { OwnClients } from '../connection/own-clients.js';
import { PrimaryWatch } from './primary-watch.js';
import { safeOptions } from '../connection/ioredis-options.js';
import { mendQuirks, reconnect } from '../connection/ioredis-quirks.js';
import type { SentinelReasons } from '../connection/connection-trouble.js';
import type { ServerConnection } from '../connection/server-connection.js';
import { openServer } from '../durability/durable-server.js';

/** For this long after a fail-over, other processes may still use the former primary. Then a sentinel has made it a replica. */
const FAIL_OVER_MS = 60_000;

/** The connections of one instance to one primary: for commands, for messages, and for durable commands. */
export class PrimaryConnection implements Connection {
  readonly isCluster = false;
  readonly topology: 'standalone' | 'sentinel';
  readonly subscriber: Redis;
  readonly outerKeyPrefix: string;
  readonly #server: ServerConnection;
  readonly #watch: PrimaryWatch;
  readonly #scripts: ScriptSender;
  readonly #clients: OwnClients;
  #failedOverAt = -Infinity;

  constructor(
    model: Redis,
    instanceId: string,
    leaseMs: number,
    scripts: ScriptSender,
    clients: OwnClients,
    durability?: Durability,
  ) {
    this.topology = model.options.sentinels ? 'sentinel' : 'standalone';
    this.#scripts = scripts;
    this.#clients = clients;
    const options = { ...safeOptions(instanceId, leaseMs), sentinelRetryStrategy: clients.sentinelPause };
    // A waiter that listens on a replica counts as dead when the primary passes a lock on.
    const onDemoted = (): void => {
      this.#failedOverAt = performance.now();
      this.replaceSubscriber();
    };
    const reasonOfSentinel: SentinelReasons = (address) => this.#watch.reasonOf(address);
    this.#server = openServer(model, options, { clients, onDemoted, reasonOfSentinel }, durability);
    this.subscriber = clients.add(model.duplicate(options));
    mendQuirks(this.subscriber);
    this.outerKeyPrefix = model.options.keyPrefix?.toString() ?? '';
    // The connection for commands has the same troubles, and reports them.
    this.subscriber.on('error', () => {});
    this.#watch = new PrimaryWatch(this.#server.client.options, clients, () => {
      this.#server.reconnect();
      onDemoted();
    });
  }

  get mayLoseMessages(): boolean {
    return performance.now() < this.#failedOverAt + FAIL_OVER_MS;
  }

  get isConnected(): boolean {
    return this.#server.isConnected;
  }

  connect(): void {
    this.#server.connect();
    this.subscriber.connect().catch(() => {}); // as above
    this.#watch.start();
  }

  onConnected(listener: () => void): void {
    this.#server.onConnected(listener);
  }

  route<T>(call: ScriptCall<T>): Promise<T> {
    try {
      return this.#server.sendIfConnected(this.#scripts, call, this.#explain);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  troubleAt(): LockStoreError | undefined {
    return this.#server.trouble;
  }

  servers(): readonly ServerConnection[] {
    return [this.#server];
  }

  neededServers(): readonly LockServer[] {
    return [{ server: this.#server }];
  }

  serverInTurn(): LockServer {
    return { server: this.#server };
  }

  replaceSubscriber(): void {
    reconnect(this.subscriber);
  }

  describeTrouble(): string {
    return this.#server.describeTrouble();
  }

  keepAlive(): void {
    this.#clients.keepAlive();
  }

  close(): Promise<void> {
    this.#server.close();
    this.subscriber.disconnect();
    this.#watch.close();
    return this.#clients.closed();
  }

  readonly #explain = (error: unknown): never => {
    throw this.#server.explain(error);
  };
}
