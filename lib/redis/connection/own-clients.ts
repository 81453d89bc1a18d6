import type { Cluster, Redis } from 'ioredis';
import type { Credentials } from './credentials.js';
import { reconnectPauses } from './ioredis-options.js';

/**
 * The longest pause before sentinels are asked again while the process may exit. ioredis keeps the process alive for
 * two seconds after each attempt, so the pause has to be longer, and common to all clients of the process.
 */
const MAX_RESTART_MS = 2_500;
/**
 * Time that the connections have to close. If the other end hangs, ioredis destroys a connection after
 * `disconnectTimeout`.
 */
const CLOSED_WITHIN_MS = 1_000;

const NOT_CONNECTED: ReadonlySet<string> = new Set(['wait', 'reconnecting', 'end']);

type Client = Redis | Cluster;

/** Asks sentinels again, for all instances in this process. */
const restarts = new Set<() => void>();
let lastPause: NodeJS.Timeout | undefined;

/** Calls back when no client has given up for the longest pause: then there was a moment at which the process could exit. */
function afterLongestPause(restart: () => void): void {
  restarts.add(restart);
  clearTimeout(lastPause);
  lastPause = setTimeout(() => {
    const all = [...restarts];
    restarts.clear();
    for (const each of all) each();
  }, MAX_RESTART_MS).unref();
}

/**
 * The ioredis clients of one instance. Decides whether they keep the process alive, and knows when all of them have
 * closed.
 */
export class OwnClients {
  readonly #clients = new Set<Client>();
  #keepsAlive: boolean;
  readonly pauseBefore: (attempt: number) => number;
  /** The clients that have given up for now: see {@link sentinelPause}. */
  readonly #resting = new Set<Client>();
  #restarts = 0;
  #isClosing = false;
  #onAllClosed: (() => void) | undefined;

  /**
   * @param inBackground whether the clients let the process exit until {@link keepAlive} is called
   * @param credentials what the clients show to Redis in place of the password in their options
   */
  constructor(
    leaseMs: number,
    inBackground = false,
    readonly credentials?: Credentials,
  ) {
    this.#keepsAlive = !inBackground;
    this.pauseBefore = reconnectPauses(leaseMs);
  }

  /** @param renew see {@link Credentials.attach} */
  add(client: Redis, renew?: () => Promise<void>): Redis {
    this.credentials?.attach(client, renew);
    return this.addOther(client);
  }

  /** Adds a client that shows no credentials of Redis: of a sentinel, or of a cluster as a whole. */
  addOther<T extends Client>(client: T): T {
    this.#clients.add(client);
    client.on('connecting', () => this.#clients.add(client));
    client.on('connect', () => this.#refer(client));
    client.on('reconnecting', () => this.#refer(client));
    client.on('end', () => this.#ended(client));
    return client;
  }

  /** From now on, the clients keep the process alive. Calls in progress do so in any case: each one has a timer. */
  keepAlive(): void {
    this.#keepsAlive = true;
    for (const client of this.#clients) this.#refer(client);
    this.#restart();
  }

  /**
   * Returns the pause of ioredis before it asks the first sentinel again, in milliseconds. Its timer cannot be
   * unreferenced from outside. While the process may exit, ioredis therefore gives up (`null`), and the client is
   * started again.
   */
  readonly sentinelPause = (attempt: number): number | null => {
    return this.#keepsAlive ? this.pauseBefore(attempt) : null;
  };

  /** Call this after disconnecting all clients. Resolves when they have closed, or after a second. */
  closed(): Promise<void> {
    this.#isClosing = true;
    this.credentials?.close();
    // ioredis emits no end for a client that has no connection at the moment. A cluster has no connection of its own.
    for (const client of this.#clients) {
      if (client.isCluster || NOT_CONNECTED.has(client.status)) this.#clients.delete(client);
    }
    if (this.#clients.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, CLOSED_WITHIN_MS);
      this.#onAllClosed = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #ended(client: Client): void {
    if (!client.isCluster && (client as Redis).options.sentinels) this.#restartLater(client);
    this.#clients.delete(client);
    if (this.#clients.size === 0) this.#onAllClosed?.();
  }

  #restartLater(client: Client): void {
    if (this.#isClosing) return;
    this.#resting.add(client);
    const pauseMs = this.pauseBefore(1) * 2 ** this.#restarts;
    if (!this.#keepsAlive && pauseMs >= MAX_RESTART_MS) return afterLongestPause(this.#restart);
    if (this.#resting.size > 1) return;
    this.#restarts++;
    const timer = setTimeout(this.#restart, Math.min(MAX_RESTART_MS, pauseMs));
    if (!this.#keepsAlive) timer.unref();
  }

  readonly #restart = (): void => {
    if (this.#isClosing) return;
    const resting = [...this.#resting];
    this.#resting.clear();
    for (const client of resting) client.connect().catch(() => {}); // 'end' follows, or it tries by itself
  };

  /** Lets the socket of a client, and the timer of its next attempt, keep the process alive or not. */
  #refer(client: Client): void {
    const { stream, reconnectTimeout } = client as unknown as Partial<{
      stream: { ref(): void; unref(): void };
      reconnectTimeout: NodeJS.Timeout | null;
    }>;
    if (this.#keepsAlive) {
      stream?.ref();
      reconnectTimeout?.ref();
    } else {
      stream?.unref();
      reconnectTimeout?.unref();
    }
  }
}
