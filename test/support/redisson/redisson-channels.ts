import { Cluster, type Redis } from 'ioredis';

/** Somebody has unlocked: one waiter may try. Somebody has unlocked for reading: all may. */
const UNLOCK = '0';
const READ_UNLOCK = '1';

/** One channel, for as long as threads of this service wait for it. */
interface Channel {
  waiters: number;
  readonly messages: Permits;
  readonly isSubscribed: Promise<unknown>;
}

/** The subscriptions of one service: one for all its threads that wait for the same lock. */
export class RedissonChannels {
  readonly #subscriber: Redis | Cluster;
  readonly #channels = new Map<string, Channel>();

  constructor(
    redis: Redis | Cluster,
    private readonly sharded: boolean,
  ) {
    this.#subscriber =
      redis instanceof Cluster ? redis.duplicate([], { shardedSubscribers: sharded }) : redis.duplicate();
    this.#subscriber.on('error', () => undefined);
    this.#subscriber.on(sharded ? 'smessage' : 'message', (channel: string, message: string) => {
      const messages = this.#channels.get(channel)?.messages;
      if (message === UNLOCK) messages?.release();
      else if (message === READ_UNLOCK) messages?.releaseAll();
    });
  }

  async whileSubscribed<T>(name: string, work: (untilUnlock: (ms: number) => Promise<boolean>) => Promise<T>) {
    const channel = this.#join(name);
    try {
      await channel.isSubscribed;
      return await work((ms) => channel.messages.tryAcquire(ms));
    } finally {
      this.#leave(name, channel);
    }
  }

  close(): void {
    this.#subscriber.disconnect();
  }

  #join(name: string): Channel {
    const present = this.#channels.get(name);
    if (present) {
      present.waiters++;
      return present;
    }
    const isSubscribed = this.sharded ? this.#subscriber.ssubscribe(name) : this.#subscriber.subscribe(name);
    const channel = { waiters: 1, messages: new Permits(), isSubscribed };
    this.#channels.set(name, channel);
    return channel;
  }

  #leave(name: string, channel: Channel): void {
    if (--channel.waiters > 0) return;
    this.#channels.delete(name);
    const left = this.sharded ? this.#subscriber.sunsubscribe(name) : this.#subscriber.unsubscribe(name);
    void left.catch(() => undefined);
  }
}

/** A message that comes while no thread waits is kept for the next one, as a semaphore of Java does. */
class Permits {
  #available = 0;
  #waiting: (() => void)[] = [];

  release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#available++;
  }

  releaseAll(): void {
    for (const next of this.#waiting.splice(0)) next();
  }

  /** @returns whether there was a permit within this time */
  tryAcquire(ms: number): Promise<boolean> {
    if (this.#available > 0) {
      this.#available--;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const end = (isGranted: boolean): void => {
        clearTimeout(timer);
        this.#waiting = this.#waiting.filter((other) => other !== granted);
        resolve(isGranted);
      };
      const granted = (): void => end(true);
      const timer = setTimeout(end, Math.max(1, ms), false);
      this.#waiting.push(granted);
    });
  }
}
