import { Redis, type RedisOptions } from 'ioredis';
import type { LockStoreError } from '../../kernel/store/store-error.js';
import type { Connection, LockServer } from '../connection/connection.js';
import type { ScriptCall, ScriptSender } from '../script/script.js';
import type { Durability } from '../durability/durable-connection.js';
import { openServer } from '../durability/durable-server.js';
import type { OwnClients } from '../connection/own-clients.js';
import { OwnSubscriber } from '../connection/own-subscriber.js';
import { safeOptions, subscriptionPause } from '../connection/ioredis-options.js';
import { mendQuirks, reconnect } from '../connection/ioredis-quirks.js';
import { ConnectionTrouble, type SentinelReasons } from '../connection/connection-trouble.js';
import type { ServerConnection } from '../connection/server-connection.js';
import { inRootContext } from '../../kernel/util/async-contexts.js';
import { hostAndPort } from '../script/address.js';
import { toStoreError } from '../script/failures.js';

/** For this long after a fail-over, other processes may still use the former primary. Then a sentinel has made it a replica. */
const FAIL_OVER_MS = 60_000;

/** The connections of one instance to one primary: for commands, for messages, and for durable commands. */
export class PrimaryConnection implements Connection {
  readonly isCluster = false;
  readonly topology: 'standalone' | 'sentinel';
  readonly subscriber: PrimarySubscriber;
  readonly outerKeyPrefix: string;
  readonly #server: ServerConnection;
  readonly #watch: PrimaryWatch;
  #failedOverAt = -Infinity;

  constructor(
    model: Redis,
    instanceId: string,
    leaseMs: number,
    private readonly scripts: ScriptSender,
    readonly clients: OwnClients,
    durability?: Durability,
  ) {
    this.topology = model.options.sentinels ? 'sentinel' : 'standalone';
    const options = { ...safeOptions(instanceId, leaseMs), sentinelRetryStrategy: clients.sentinelPause };
    // A waiter that listens on a replica counts as dead when the primary passes a lock on.
    const onDemoted = (): void => {
      this.#failedOverAt = performance.now();
      this.replaceSubscriber();
    };
    const reasonOfSentinel: SentinelReasons = (address) => this.#watch.reasonOf(address);
    this.#server = openServer(model, options, { clients, onDemoted, reasonOfSentinel }, durability);
    this.subscriber = new PrimarySubscriber(model, options, clients);
    this.outerKeyPrefix = model.options.keyPrefix?.toString() ?? '';
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
    this.subscriber.connect();
    this.#watch.start();
  }

  onConnected(listener: () => void): void {
    this.#server.onConnected(listener);
  }

  route<T>(call: ScriptCall<T>): Promise<T> {
    try {
      return this.#server.sendIfConnected(this.scripts, call, this.#explain);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  troubleAt(): LockStoreError | undefined {
    return this.#server.trouble;
  }

  trusts(_key: string, fence: string, sentAt: number): boolean {
    return this.#server.trusts(this.scripts, fence, sentAt);
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
    this.subscriber.reconnect();
  }

  describeTrouble(): string {
    return this.#server.describeTrouble();
  }

  close(): Promise<void> {
    this.#server.close();
    this.subscriber.close();
    this.#watch.close();
    return this.clients.closed();
  }

  readonly #explain = (error: unknown): never => {
    throw this.#server.explain(error);
  };
}

/** Listens at the primary. ioredis reconnects it. */
class PrimarySubscriber extends OwnSubscriber {
  constructor(
    private readonly model: Redis,
    private readonly options: RedisOptions,
    clients: OwnClients,
  ) {
    super(clients);
    this.use(this.make());
  }

  connect(): void {
    this.client?.connect().catch(() => {}); // the connection for commands reports why
  }

  reconnect(): void {
    if (this.client) reconnect(this.client);
  }

  close(): void {
    this.client?.disconnect();
  }

  protected make(): Redis {
    const client = this.model.duplicate(this.options);
    mendQuirks(client);
    return this.own(client);
  }
}

const SWITCHED = '+switch-master';

/**
 * Listens to the sentinels, which announce a new primary at once. The old primary does not: if it is still alive, it
 * remains a primary for some seconds (usually 8), and grants locks that the new primary knows nothing of.
 *
 * (The ioredis option `failoverDetector` does the same. But a client that learns of a fail-over while it is connecting
 * gives up for good: it never connects again.)
 */
class PrimaryWatch {
  readonly #sentinels: readonly Redis[];
  readonly #troubles = new Map<string, ConnectionTrouble>();
  readonly #name: string | undefined;
  readonly #onSwitched: () => void;
  /** The last address of the primary that a sentinel has announced. */
  #address: string | undefined;

  /** @param options the options of the client that looks for the primary */
  constructor(options: RedisOptions, clients: OwnClients, onSwitched: () => void) {
    this.#name = options.name;
    this.#onSwitched = onSwitched;
    this.#sentinels = (options.sentinels ?? []).map((sentinel) =>
      clients.addOther(this.#connectionTo(sentinel, options)),
    );
  }

  start(): void {
    for (const sentinel of this.#sentinels) sentinel.connect().catch(() => {});
  }

  /**
   * Why the sentinel cannot be reached, as text for a message; `undefined` if it can, or if the options do not name it.
   */
  reasonOf(address: string): string | undefined {
    return this.#troubles.get(address)?.reason;
  }

  close(): void {
    for (const sentinel of this.#sentinels) sentinel.disconnect();
  }

  #connectionTo(address: Partial<{ host: string; port: number; family: number }>, options: RedisOptions): Redis {
    const { sentinelUsername, sentinelPassword, sentinelTLS, connectTimeout } = options;
    const sentinel = new Redis({
      ...(sentinelTLS && { tls: sentinelTLS }),
      ...(sentinelUsername && { username: sentinelUsername }),
      ...(sentinelPassword && { password: sentinelPassword }),
      ...address,
      port: address.port ?? 26_379,
      connectTimeout,
      retryStrategy: options.retryStrategy,
      keepAlive: options.keepAlive,
      disconnectTimeout: options.disconnectTimeout,
      disableClientInfo: true,
      lazyConnect: true,
      maxRetriesPerRequest: 0,
      autoResubscribe: false,
      enableOfflineQueue: false,
      enableReadyCheck: false,
    });
    mendQuirks(sentinel);
    // Takes the errors. There are other sentinels, and the connection to Redis reports if none of them can be reached.
    this.#troubles.set(hostAndPort(sentinel), new ConnectionTrouble(sentinel));
    sentinel.on('ready', () => {
      const { stream } = sentinel;
      // One of the two may have been accepted, so the next try is on another connection.
      const again = (): void => {
        if (sentinel.stream === stream) reconnect(sentinel);
      };
      this.#listen(sentinel).catch((error: unknown) => {
        inRootContext(() => setTimeout(again, subscriptionPause(toStoreError(error))).unref());
      });
    });
    sentinel.on('message', (_channel: string, message: string) => {
      const [name, , , host, port] = message.split(' ');
      if (name === this.#name) this.#found(`${host}:${port}`);
    });
    return sentinel;
  }

  /** Subscribes, and asks for the address: the primary may have changed while this sentinel was not listened to. */
  async #listen(sentinel: Redis): Promise<void> {
    const [address] = await Promise.all([
      // Asks first: a connection that has subscribed accepts no other commands.
      sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.#name ?? ''),
      sentinel.subscribe(SWITCHED),
    ]);
    if (Array.isArray(address)) this.#found(address.join(':'));
  }

  #found(address: string): void {
    if (address === this.#address) return;
    const isFirst = this.#address === undefined;
    this.#address = address;
    if (!isFirst) this.#onSwitched();
  }
}
