import type { LockStore } from '../../lib/core/lock-store.js';

/** The wake-ups of one instance, in the order they came. */
export class WakeLog {
  readonly #arrived: (string | undefined)[] = [];
  #waiting: (() => void) | undefined;

  constructor(store: LockStore) {
    store.onWake((resource) => {
      this.#arrived.push(resource);
      this.#waiting?.();
    });
  }

  /** Waits for the next wake-up that nobody has taken yet. */
  async next(): Promise<string | undefined> {
    if (this.#arrived.length === 0) await new Promise<void>((resolve) => (this.#waiting = resolve));
    return this.#arrived.shift();
  }
}
