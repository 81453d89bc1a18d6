import type { ForeignClaim, ForeignReply, ForeignRun } from '../core/api/foreign-lock.js';
import { isOne } from '../redis/lock-replies.js';
import { readAcquired } from './claim-replies.js';
import type { ForeignServer } from './foreign-server.js';
import { ACQUIRE, RELEASE, RENEW } from './key-scripts.js';

/** What is written into the key, and for how long. */
interface KeyOwner {
  /** The value of the key while this owner has it; no other owner may ever have the same. */
  readonly value: string;
  readonly run?: ForeignRun | undefined;
  /** How long the key stays at least once it was set. @default 0 */
  readonly keepMs?: number | undefined;
}

/** A claim to a lock that is one string with an expiry, on one server. */
export class KeyClaim implements ForeignClaim {
  readonly #keys: readonly string[];
  /** Until when the key has to stay at least. */
  #keptUntil = -Infinity;

  constructor(
    private readonly server: ForeignServer,
    key: string,
    private readonly owner: KeyOwner,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#keys = [server.key(key)];
  }

  async tryAcquire(leaseMs: number, signal: AbortSignal): Promise<ForeignReply> {
    await this.server.connected(signal);
    const { value, run, keepMs = 0 } = this.owner;
    const args = [value, Math.max(leaseMs, keepMs), run?.name ?? '', run?.token ?? 0];
    return this.server.run(ACQUIRE, this.#keys, args, (reply) => {
      const read = readAcquired(reply);
      // From now on, not from the sending: the key must not go earlier than the old code would let it.
      if (read.status === 'held' && this.#keptUntil === -Infinity) this.#keptUntil = this.now() + keepMs;
      return read;
    });
  }

  renew(leaseMs: number): Promise<boolean> {
    return this.server.run(RENEW, this.#keys, [this.owner.value, leaseMs], isOne);
  }

  describeTrouble(): string | undefined {
    return this.server.describeTrouble(this.#keys[0]!);
  }

  release(keepMs: number): Promise<boolean> {
    const leftMs = Math.ceil(Math.max(keepMs, this.#keptUntil - this.now(), 0));
    return this.server.run(RELEASE, this.#keys, [this.owner.value, leftMs], isOne);
  }
}
