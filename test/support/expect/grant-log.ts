import type { LockStore, LockOwner, PushedGrant } from '../../../lib/core/store/lock-store.js';

/** A grant, and whose it is. */
export interface OwnedGrant extends Omit<PushedGrant, 'isFor'> {
  /** Of those that have asked this store; empty where it is none of theirs. */
  readonly owner: string;
}

/** The grants that one instance is told of, in the order they came. */
export class GrantLog {
  readonly #arrived: OwnedGrant[] = [];
  readonly #owners = new Set<string>();
  #waiting: (() => void) | undefined;

  constructor(store: LockStore) {
    const { acquire, rotate } = store;
    const noted = (newOwner: LockOwner): LockOwner => {
      this.#owners.add(newOwner.id);
      return newOwner;
    };
    store.acquire = (newOwner, ...how) => acquire.call(store, noted(newOwner), ...how);
    store.rotate = (leaving, next, ...how) => rotate.call(store, leaving, noted(next), ...how);
    store.listen({
      granted: ({ isFor, ...grant }) => {
        const owner = [...this.#owners].reverse().find(isFor) ?? '';
        this.#arrived.push({ ...grant, owner });
        this.#waiting?.();
      },
      reconnected: () => {},
    });
  }

  /** Waits for the next grant that nobody has taken yet. */
  async next(): Promise<OwnedGrant> {
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
