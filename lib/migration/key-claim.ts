import type { ForeignClaim, ForeignReply } from '../core/api/foreign-lock.js';
import { isOne } from '../redis/lock-replies.js';
import { readAcquired } from './claim-replies.js';
import type { ForeignServer } from './foreign-server.js';
import { ACQUIRE, RELEASE, RENEW } from './key-scripts.js';

/** A claim to a lock that is one string with an expiry, on one server. */
export class KeyClaim implements ForeignClaim {
  readonly #keys: readonly string[];
  /** Until when the key has to stay at least. */
  #keptUntil = -Infinity;

  /**
   * @param value the value of the key while this owner has it; no other owner may ever have the same
   * @param keepMs how long the key stays at least once it was set
   */
  constructor(
    private readonly server: ForeignServer,
    key: string,
    private readonly value: string,
    private readonly keepMs: number = 0,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#keys = [server.key(key)];
  }

  async tryAcquire(leaseMs: number, signal: AbortSignal): Promise<ForeignReply> {
    await this.server.connected(signal);
    const args = [this.value, Math.max(leaseMs, this.keepMs)];
    return this.server.run(ACQUIRE, this.#keys, args, (reply) => {
      const read = readAcquired(reply);
      // From now on, not from the sending: the key must not go earlier than the old code would let it.
      if (read.status === 'held' && this.#keptUntil === -Infinity) this.#keptUntil = this.now() + this.keepMs;
      return read;
    });
  }

  renew(leaseMs: number): Promise<boolean> {
    return this.server.run(RENEW, this.#keys, [this.value, leaseMs], isOne);
  }

  describeTrouble(): string | undefined {
    return this.server.describeTrouble(this.#keys[0]!);
  }

  release(keepMs: number): Promise<boolean> {
    const leftMs = Math.ceil(Math.max(keepMs, this.#keptUntil - this.now(), 0));
    return this.server.run(RELEASE, this.#keys, [this.value, leftMs], isOne);
  }
}
