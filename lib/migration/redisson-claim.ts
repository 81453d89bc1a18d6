import type { ForeignClaim, ForeignReply, ForeignRun } from '../core/api/foreign-lock.js';
import { isOne } from '../redis/lock-replies.js';
import { readAcquired } from './claim-replies.js';
import type { ForeignServer } from './foreign-server.js';
import { REDISSON_ACQUIRE, REDISSON_RELEASE, REDISSON_RENEW } from './redisson-scripts.js';
import type { UnlockChannels, UnlockWait } from './unlock-channels.js';

/** A claim to an `RLock` of Redisson, on one server or on a cluster. */
export class RedissonClaim implements ForeignClaim {
  readonly #keys: readonly string[];
  readonly #channel: string;
  #wait: UnlockWait | undefined;
  /** Aborts when the call gives up, also between two questions. */
  #call: AbortSignal | undefined;

  /** @param field the field of the hash while this owner has the lock; no other owner may ever have the same */
  constructor(
    private readonly server: ForeignServer,
    private readonly channels: UnlockChannels,
    name: string,
    private readonly field: string,
    private readonly run?: ForeignRun,
  ) {
    const key = server.key(name);
    this.#keys = [key];
    this.#channel = channelOf(key);
  }

  async tryAcquire(leaseMs: number, signal: AbortSignal): Promise<ForeignReply> {
    await this.server.connected(signal);
    this.#call = signal;
    // An unlock that is heard from now on may have come after the answer.
    this.#wait?.ask();
    const reply = await this.server.run(
      REDISSON_ACQUIRE,
      this.#keys,
      [this.field, leaseMs, this.run?.name ?? '', this.run?.token ?? 0],
      readAcquired,
    );
    if (reply.status === 'held') this.#leave();
    return reply;
  }

  renew(leaseMs: number): Promise<boolean> {
    return this.server.run(REDISSON_RENEW, this.#keys, [this.field, leaseMs], isOne);
  }

  describeTrouble(): string | undefined {
    return this.server.describeTrouble(this.#keys[0]!);
  }

  release(keepMs: number): Promise<boolean> {
    this.#leave();
    const args = [this.field, Math.ceil(keepMs), this.#channel, this.server.isCluster ? 1 : 0];
    return this.server.run(REDISSON_RELEASE, this.#keys, args, isOne);
  }

  /** Listens until the call has the lock or gives up, and not only for one pause: else it could miss an unlock. */
  whenFree(forMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#call?.aborted) return Promise.resolve();
    if (!this.#wait) {
      this.#wait = this.channels.join(this.#channel);
      this.#call?.addEventListener('abort', this.#leave, { once: true });
    }
    return this.#wait.untilUnlocked(forMs, signal);
  }

  readonly #leave = (): void => {
    this.#call?.removeEventListener('abort', this.#leave);
    this.#wait?.leave();
    this.#wait = undefined;
  };
}

/** Where Redisson announces an unlock. On a cluster, it is in the slot of the lock. */
export function channelOf(key: string): string {
  return `redisson_lock__channel:${key.includes('{') ? key : `{${key}}`}`;
}
