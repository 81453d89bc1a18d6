import { Redis, type RedisOptions } from 'ioredis';
import { inRootContext } from '../../core/util/async-contexts.js';
import { hostAndPort } from '../script/address.js';
import { toStoreError } from '../script/failures.js';
import { mendQuirks, reconnect } from '../connection/ioredis-quirks.js';
import { ConnectionTrouble } from '../connection/connection-trouble.js';
import type { OwnClients } from '../connection/own-clients.js';
import { subscriptionPause } from '../connection/subscription-pause.js';

const SWITCHED = '+switch-master';

/**
 * Listens to the sentinels, which announce a new primary at once. The old primary does not: if it is still alive, it
 * remains a primary for some seconds (usually 8), and grants locks that the new primary knows nothing of.
 *
 * (The ioredis option `failoverDetector` does the same. But a client that learns of a fail-over while it is connecting
 * gives up for good: it never connects again.)
 */
export class PrimaryWatch {
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
    this.#sentinels = (options.sentinels ?? []).map((sentinel) => clients.add(this.#connectionTo(sentinel, options)));
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
