import type { LockStore, PushedGrant } from '../../lib/core/lock-store.js';

/** The grants that one instance is told of, in the order they came. */
export class GrantLog {
  readonly #arrived: PushedGrant[] = [];
  #waiting: (() => void) | undefined;

  constructor(store: LockStore) {
    store.listen({
      granted: (grant) => {
        this.#arrived.push(grant);
        this.#waiting?.();
      },
      reconnected: () => {},
    });
  }

  /** Waits for the next grant that nobody has taken yet. */
  async next(): Promise<PushedGrant> {
    for (;;) {
      const grant = this.#arrived.shift();
      if (grant) return grant;
      await new Promise<void>((resolve) => (this.#waiting = resolve));
    }
  }

  /** How many have come that nobody has taken yet. */
  get size(): number {
    return this.#arrived.length;
  }
}
