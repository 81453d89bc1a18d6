import { Redis, type RedisOptions } from 'ioredis';
import { quoteResource } from '../core/errors.js';
import { mendBrokenHandshake } from './broken-handshake.js';

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
  readonly #name: string | undefined;
  readonly #onSwitched: () => void;
  /** Where the primary was when a sentinel last said so. */
  #address: string | undefined;

  /** @param options those of the client that is to find the primary */
  constructor(options: RedisOptions, onSwitched: () => void) {
    this.#name = options.name;
    this.#onSwitched = onSwitched;
    this.#sentinels = (options.sentinels ?? []).map((sentinel) => this.#connectionTo(sentinel, options));
  }

  start(): void {
    for (const sentinel of this.#sentinels) sentinel.connect().catch(() => {});
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
    mendBrokenHandshake(sentinel);
    // There are others, and whoever connects to Redis tells of what is wrong with all of them.
    sentinel.on('error', () => {});
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

/** Why a sentinel did not name the primary, in words that help. */
export function explainSentinel(message: string, name: string | undefined): string {
  const [, address] =
    /^connected to sentinel (\S+) successfully, but got an invalid reply: null$/.exec(message) ??
    /^failed to connect to sentinel (\S+) because ERR No such master with that name$/.exec(message) ??
    [];
  if (address) return `the sentinel at ${address} knows no primary ${quoteResource(name ?? '')}`;
  const isRefused = /NOAUTH|WRONGPASS|NOPERM|unauthenticated/.test(message);
  return `${message.replace(/\.$/, '')}${isRefused ? '. Give sentinelPassword, and sentinelUsername, in the connection option' : ''}`;
}
