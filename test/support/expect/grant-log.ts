import type { LockStore, LockOwner, PushedGrant, RetentionNotice } from '../../../lib/core/store/lock-store.js';

/** A grant, and whose it is. */
export interface OwnedGrant extends Omit<PushedGrant, 'isFor'> {
  /** Of those that have asked this store; empty where it is none of theirs. */
  readonly owner: string;
}

/** A message that a resource stays taken, and whose it is. */
interface OwnedNotice extends Omit<RetentionNotice, 'isFor'> {
  readonly owner: string;
}

/** The grants that one instance is told of, in the order they came. */
export class GrantLog {
  readonly #arrived: OwnedGrant[] = [];
  /** The messages that a resource stays taken. */
  readonly notices: OwnedNotice[] = [];
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
    const ownerOf = (isFor: (owner: string) => boolean): string => [...this.#owners].reverse().find(isFor) ?? '';
    store.listen({
      granted: ({ isFor, ...grant }) => {
        this.#arrived.push({ ...grant, owner: ownerOf(isFor) });
        this.#waiting?.();
      },
      retained: ({ isFor, ...notice }) => void this.notices.push({ ...notice, owner: ownerOf(isFor) }),
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
