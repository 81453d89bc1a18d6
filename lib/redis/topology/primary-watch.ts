import { Redis, type RedisOptions } from 'ioredis';
import { hostAndPort } from '../script/address.js';
import { mendQuirks } from '../connection/ioredis-quirks.js';
import { ConnectionTrouble } from '../connection/connection-trouble.js';
import type { OwnClients } from '../connection/own-clients.js';

const SWITCHED = '+switch-master';

/**
 * Listens to the sentinels, who say at once when another server is the primary. The old one does not: where it was not dead
 * it goes on as a primary for some seconds (8, usually), and grants locks that the new one knows nothing of.
 *
 * (ioredis can do so by itself, by its option `failoverDetector`. But where it hears of a fail-over while it is connecting
 * it gives up for good: such a client never connects again.)
 */
export class PrimaryWatch {
  readonly #sentinels: readonly Redis[];
  readonly #troubles = new Map<string, ConnectionTrouble>();
  readonly #name: string | undefined;
  readonly #onSwitched: () => void;
  /** Where the primary was when a sentinel last said so. */
  #address: string | undefined;

  /** @param options those of the client that is to find the primary */
  constructor(options: RedisOptions, clients: OwnClients, onSwitched: () => void) {
    this.#name = options.name;
    this.#onSwitched = onSwitched;
    this.#sentinels = (options.sentinels ?? []).map((sentinel) => clients.add(this.#connectionTo(sentinel, options)));
  }

  start(): void {
    for (const sentinel of this.#sentinels) sentinel.connect().catch(() => {});
  }

  /** Why a sentinel cannot be listened to, for people; nothing where it can, or where it is none of those that were named. */
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
    // It takes the errors: there are other sentinels, and whoever connects to Redis tells of what is wrong with all of them.
    this.#troubles.set(hostAndPort(sentinel), new ConnectionTrouble(sentinel));
    sentinel.on('ready', () => void this.#listen(sentinel).catch(() => {}));
    sentinel.on('message', (_channel: string, message: string) => {
      const [name, , , host, port] = message.split(' ');
      if (name === this.#name) this.#found(`${host}:${port}`);
    });
    return sentinel;
  }

  /** And asks: it may have happened while nobody listened. */
  async #listen(sentinel: Redis): Promise<void> {
    const [address] = await Promise.all([
      // First: a connection that listens takes no such question any more.
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
