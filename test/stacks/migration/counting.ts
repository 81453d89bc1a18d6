import { Redis } from 'ioredis';

/** The libraries of the old release. */
export const LIBRARIES = ['redlock', 'redis-semaphore', 'murlock', 'set-nx'] as const;
export type Library = (typeof LIBRARIES)[number];

/** The ways to run work under a lock. */
export const WAYS = ['method', 'using', 'job'] as const;
export type Way = (typeof WAYS)[number];

export type Kind = 'old' | 'new';

/** The lifetime of old processes' locks, and the leases of new ones. */
export const LEASE_MS = 2_000;
/** Each way has as many resources, except jobs, which have one. */
export const IDS = ['1', '2'] as const;

/** The test's command to a pod: die or freeze in the middle of its next work of this kind, or end. */
export type Order = { readonly signal: 'SIGKILL' | 'SIGSTOP'; readonly way: Way } | 'end';

/** Throws where the lock is not held any more. */
export type CheckHeld = () => void;
export type Work = (checkHeld: CheckHeld) => Promise<void>;

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * One process: under each lock it reads a counter, waits, and writes it. It does so again and again, for all locks side by
 * side.
 */
export class Counting {
  readonly #redis: Redis;
  #order: Order | undefined;

  constructor(
    private readonly kind: Kind,
    url: string,
  ) {
    this.#redis = new Redis(url);
    process.on('message', (message: Order) => (this.#order = message));
  }

  /** Counts once: what is done under a lock. */
  async once(way: Way, id: string, checkHeld: CheckHeld): Promise<void> {
    const value = Number(await this.#redis.get(`count:${way}:${id}`));
    await sleep(Math.random() * 2);
    await this.#obey(way);
    checkHeld();
    // The second one is the book that the first is compared with, and not an increment of the counter.
    await this.#redis
      .multi()
      .set(`count:${way}:${id}`, value + 1)
      .incr(`done:${way}:${this.kind}`)
      .exec();
  }

  /** Counts for a while. */
  async run(checkHeld: CheckHeld): Promise<void> {
    const begunAt = performance.now();
    while (performance.now() < begunAt + 300) await this.once('job', 'outbox', checkHeld);
  }

  /** @param locked waits for the lock, and does the work under it. Errors of its own are handled there */
  async untilEnd(locked: (way: 'method' | 'using', id: string, work: Work) => Promise<void>): Promise<void> {
    await this.#redis.ping();
    process.send!('ready');
    const loop = async (way: 'method' | 'using', id: string): Promise<void> => {
      while (this.#order !== 'end') {
        await locked(way, id, (checkHeld) => this.once(way, id, checkHeld));
        await sleep(Math.random() * 5);
      }
    };
    await Promise.all((['method', 'using'] as const).flatMap((way) => IDS.map((id) => loop(way, id))));
    this.#redis.disconnect();
    process.disconnect();
  }

  async #obey(way: Way): Promise<void> {
    const order = this.#order;
    if (order === undefined || order === 'end' || order.way !== way) return;
    this.#order = undefined;
    await this.#redis.incr(`${this.kind}:${order.signal}:${way}`);
    process.kill(process.pid, order.signal);
  }
}
