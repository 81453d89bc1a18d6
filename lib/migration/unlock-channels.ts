import { inRootContext } from '../core/util/async-contexts.js';
import type { Subscriber } from '../redis/connection/connection.js';
import { subscriptionPause } from '../redis/connection/ioredis-options.js';
import { toStoreError } from '../redis/script/failures.js';

/** A wait that is not continued for this long has ended. */
const ABANDONED_MS = 5_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The channels on which the other library announces that a lock is free. Each is subscribed to while a call waits. */
export class UnlockChannels {
  readonly #waits = new Map<string, Set<UnlockWait>>();
  /** For each channel that was refused, when it is subscribed to again: however many calls have waited meanwhile. */
  readonly #pauses = new Map<string, NodeJS.Timeout>();

  constructor(private readonly subscriber: Subscriber) {
    subscriber.on('message', (channel: string) => this.#announce(channel));
    subscriber.on('close', () => this.#endPauses());
    subscriber.on('ready', () => {
      this.#endPauses();
      for (const channel of this.#waits.keys()) this.#subscribe(channel);
    });
  }

  get size(): number {
    return this.#waits.size;
  }

  join(channel: string): UnlockWait {
    const present = this.#waits.get(channel);
    const wait: UnlockWait = new UnlockWait(() => this.#leave(channel, wait));
    if (present) {
      // An unlock may have been announced after its last question.
      present.add(wait);
      wait.announce();
    } else {
      this.#waits.set(channel, new Set([wait]));
      this.#subscribe(channel);
    }
    return wait;
  }

  #leave(channel: string, wait: UnlockWait): void {
    const waits = this.#waits.get(channel);
    if (!waits?.delete(wait) || waits.size > 0) return;
    this.#waits.delete(channel);
    // A connection that has broken has no subscriptions any more.
    if (this.subscriber.status === 'ready') this.subscriber.unsubscribe(channel).catch(() => {});
  }

  /** An unlock before the subscription was not heard: so its beginning counts as one. */
  #subscribe(channel: string): void {
    // The next connection subscribes, or the end of the pause.
    if (this.subscriber.status !== 'ready' || this.#pauses.has(channel)) return;
    // It belongs to all calls that wait, also when the one that began it has ended.
    inRootContext(() => this.subscriber.subscribe(channel)).then(
      () => this.#announce(channel),
      (error: unknown) => {
        // Where the user may not listen, calls wait for the end of the lease.
        const again = (): void => {
          this.#pauses.delete(channel);
          if (this.#waits.has(channel)) this.#subscribe(channel);
        };
        clearTimeout(this.#pauses.get(channel));
        this.#pauses.set(channel, setTimeout(again, subscriptionPause(toStoreError(error))).unref());
      },
    );
  }

  #endPauses(): void {
    for (const pause of this.#pauses.values()) clearTimeout(pause);
    this.#pauses.clear();
  }

  #announce(channel: string): void {
    for (const wait of this.#waits.get(channel) ?? []) wait.announce();
  }
}

/** One call that waits for a lock, and asks for it again and again. */
export class UnlockWait {
  #isAnnounced = false;
  #wake: (() => void) | undefined;
  #abandoned: NodeJS.Timeout | undefined;

  /** @param onLeave ends the subscription if no other call waits for the same lock */
  constructor(private readonly onLeave: () => void) {}

  /** It asks for the lock now: what was announced before counts no more. */
  ask(): void {
    this.#isAnnounced = false;
  }

  announce(): void {
    this.#isAnnounced = true;
    this.#wake?.();
  }

  /** Resolves at once if an unlock was announced since it has asked. */
  async untilUnlocked(forMs: number, signal: AbortSignal): Promise<void> {
    clearTimeout(this.#abandoned);
    if (!this.#isAnnounced) {
      await new Promise<void>((resolve) => {
        const settle = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', settle);
          this.#wake = undefined;
          resolve();
        };
        const timer = setTimeout(settle, Math.min(forMs, LONGEST_TIMER_MS));
        signal.addEventListener('abort', settle, { once: true });
        this.#wake = settle;
      });
    }
    this.#abandoned = setTimeout(this.leave, ABANDONED_MS).unref();
  }

  readonly leave = (): void => {
    clearTimeout(this.#abandoned);
    this.onLeave();
  };
}
