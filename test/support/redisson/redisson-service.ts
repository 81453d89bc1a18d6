import { randomUUID } from 'node:crypto';
import { type Cluster, Redis } from 'ioredis';
import { RedissonChannels } from './redisson-channels.js';
import { FORCE_UNLOCK, RENEW, TRY_LOCK, UNLOCK } from './redisson-scripts.js';

/** For how long the answer of an unlock is kept: four tries of up to five seconds each. */
const UNLOCK_LATCH_MS = 20_000;

export interface RedissonOptions {
  /** `lockWatchdogTimeout`. @default 30000 */
  watchdogMs?: number;
  /** As Redisson 3.22 and later use it on a Redis Cluster of version 7 and later. @default false */
  sharded?: boolean;
}

/** A lock that the watchdog of a service renews, for the thread that holds it. */
interface Renewed {
  readonly field: string;
  depth: number;
}

/**
 * Behaves on the wire as one application with Redisson 4.7.0 does, for its `RLock` without a `NameMapper`: the same
 * keys, fields, messages and channels, and the same order of asking, subscribing and asking again. The rules are those
 * of RedissonLock.java, RedissonBaseLock.java, RedissonObject.java (the names of the channel and of the latch),
 * pubsub/{LockPubSub,PublishSubscribe}.java, RedissonLockEntry.java and renewal/LockTask.java of that version, restated.
 *
 * @see https://github.com/redisson/redisson/tree/redisson-4.7.0/redisson/src/main/java/org/redisson
 */
export class RedissonService {
  readonly id = randomUUID();
  readonly watchdogMs: number;
  readonly #redis: Redis | Cluster;
  readonly #channels: RedissonChannels;
  readonly #publish: 'PUBLISH' | 'SPUBLISH';
  readonly #renewed = new Map<string, Renewed>();
  #timer: NodeJS.Timeout | undefined;

  /** @param redis closed by `close()` */
  constructor(redis: Redis | Cluster, { watchdogMs = 30_000, sharded = false }: RedissonOptions = {}) {
    this.watchdogMs = watchdogMs;
    this.#redis = redis;
    redis.on('error', () => undefined);
    this.#publish = sharded ? 'SPUBLISH' : 'PUBLISH';
    this.#channels = new RedissonChannels(redis, sharded);
  }

  static connect(port: number, options?: RedissonOptions): RedissonService {
    return new RedissonService(new Redis(port), options);
  }

  /** What a thread does. Threads of a service exclude each other; one thread may enter a lock again. */
  thread(threadId: number): RedissonThread {
    return new RedissonThread(this, `${this.id}:${threadId}`);
  }

  /** @returns for how long it is taken; `null` if it is granted */
  async tryOnce(name: string, field: string, leaseMs?: number): Promise<number | null> {
    const ttl = (await this.#redis.eval(TRY_LOCK, 1, name, field, leaseMs ?? this.watchdogMs)) as number | null;
    if (ttl === null && leaseMs === undefined) this.#renew(name, field);
    return ttl;
  }

  /** @throws where the thread does not hold it */
  async unlock(name: string, field: string): Promise<void> {
    const latch = `${prefixed('redisson_unlock_latch', name)}:${randomUUID()}`;
    const keys = [name, channelOf(name), latch];
    const args = [field, this.watchdogMs, UNLOCK_LATCH_MS, this.#publish];
    const isFree = await this.#redis.eval(UNLOCK, keys.length, ...keys, ...args);
    this.#renewNoMore(name, field);
    void this.#redis.del(latch).catch(() => undefined);
    if (isFree === null) throw new Error('attempt to unlock lock, not locked by current thread');
  }

  async forceUnlock(name: string): Promise<boolean> {
    this.#renewed.delete(name);
    return (await this.#redis.eval(FORCE_UNLOCK, 2, name, channelOf(name), this.#publish)) === 1;
  }

  isLocked(name: string): Promise<boolean> {
    return this.#redis.exists(name).then((count) => count === 1);
  }

  holdCount(name: string, field: string): Promise<number> {
    return this.#redis.hget(name, field).then(Number);
  }

  /** Runs while the channel of the lock is subscribed. The message of one unlock wakes one waiter of this service. */
  whileSubscribed<T>(name: string, work: (untilUnlock: (ms: number) => Promise<boolean>) => Promise<T>): Promise<T> {
    return this.#channels.whileSubscribed(channelOf(name), work);
  }

  /** Its locks are renewed no more, and end when their leases do. */
  close(): void {
    clearInterval(this.#timer);
    this.#channels.close();
    this.#redis.disconnect();
  }

  /** One timer for all locks of a service, which renews them every third of the time. */
  #renew(name: string, field: string): void {
    const present = this.#renewed.get(name);
    if (present?.field === field) present.depth++;
    else this.#renewed.set(name, { field, depth: 1 });
    this.#timer ??= setInterval(() => void this.#renewAll(), this.watchdogMs / 3);
  }

  async #renewAll(): Promise<void> {
    const renewals = [...this.#renewed].map(async ([name, { field }]) => {
      const isHeld = await this.#redis.eval(RENEW, 1, name, field, this.watchdogMs);
      if (isHeld === 0 && this.#renewed.get(name)?.field === field) this.#renewed.delete(name);
    });
    await Promise.allSettled(renewals);
  }

  #renewNoMore(name: string, field: string): void {
    const present = this.#renewed.get(name);
    if (present?.field === field && --present.depth === 0) this.#renewed.delete(name);
  }
}

/** The calls of `RLock`, by one thread. Times are milliseconds. */
export class RedissonThread {
  constructor(
    private readonly service: RedissonService,
    /** Its field in the hash of a lock. */
    readonly field: string,
  ) {}

  /** @param leaseMs without it, the watchdog renews the lock */
  async lock(name: string, leaseMs?: number): Promise<void> {
    await this.#wait(name, Infinity, leaseMs);
  }

  tryLock(name: string, waitMs = 0, leaseMs?: number): Promise<boolean> {
    return this.#wait(name, waitMs, leaseMs);
  }

  unlock(name: string): Promise<void> {
    return this.service.unlock(name, this.field);
  }

  forceUnlock(name: string): Promise<boolean> {
    return this.service.forceUnlock(name);
  }

  isLocked(name: string): Promise<boolean> {
    return this.service.isLocked(name);
  }

  holdCount(name: string): Promise<number> {
    return this.service.holdCount(name, this.field);
  }

  /** Asks; subscribes; asks again before each wait, which ends with a message or with the lease of the holder. */
  async #wait(name: string, waitMs: number, leaseMs: number | undefined): Promise<boolean> {
    const until = performance.now() + waitMs;
    if ((await this.service.tryOnce(name, this.field, leaseMs)) === null) return true;
    if (performance.now() >= until) return false;
    return this.service.whileSubscribed(name, async (untilUnlock) => {
      while (performance.now() < until) {
        const ttl = await this.service.tryOnce(name, this.field, leaseMs);
        if (ttl === null) return true;
        const leftMs = until - performance.now();
        if (leftMs <= 0) return false;
        await untilUnlock(ttl >= 0 ? Math.min(ttl, leftMs) : leftMs);
      }
      return false;
    });
  }
}

export function channelOf(name: string): string {
  return prefixed('redisson_lock__channel', name);
}

/** On a Redis Cluster, in the slot of the lock. */
function prefixed(prefix: string, name: string): string {
  return name.includes('{') ? `${prefix}:${name}` : `${prefix}:{${name}}`;
}
