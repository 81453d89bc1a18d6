import type { LockOwner, LockStore } from '../../lib/kernel/store/lock-store.js';
import type { PushedGrant, PushedNotice } from '../../lib/kernel/store/message-health.js';
import type { FreedMessage } from '../../lib/kernel/store/watch-store.js';

/** A grant, and which owner it is for. */
export interface OwnedGrant extends Omit<PushedGrant, 'isFor'> {
  /** An owner that has asked this store; empty if it is for none of them. */
  readonly owner: string;
}

/** A message that a resource stays taken, and which owner it is for. */
interface OwnedNotice extends Omit<PushedNotice, 'isFor'> {
  readonly owner: string;
}

/** Time limit for a grant. Generous, because only a failing test needs it. */
const LATEST_MS = 15_000;

// A test may have the timers of its runner replaced.
const { setTimeout, clearTimeout } = globalThis;

/** The grants that one instance has received, in order. */
export class GrantLog {
  readonly #arrived: OwnedGrant[] = [];
  /** The messages that a resource stays taken. */
  readonly notices: OwnedNotice[] = [];
  /** Called when a watched resource was free. */
  onFreed: ((message: FreedMessage) => void) | undefined;
  readonly #owners = new Set<string>();
  #waiting: (() => void) | undefined;

  constructor(private readonly store: LockStore) {
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
      freed: (message) => this.onFreed?.(message),
      reconnected: () => {},
    });
  }

  /** Takes the next grant out of the log, or waits for it. */
  async next(): Promise<OwnedGrant> {
    for (;;) {
      const grant = this.#arrived.shift();
      if (grant) return grant;
      await this.#arrival();
    }
  }

  get size(): number {
    return this.#arrived.length;
  }

  #arrival(): Promise<void> {
    return new Promise((resolve, reject) => {
      const message = `the instance ${this.store.instanceId} was told of no grant within ${LATEST_MS} ms`;
      const timer = setTimeout(() => reject(new Error(message)), LATEST_MS);
      // A test that has failed before does not keep the process waiting.
      timer.unref();
      this.#waiting = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
