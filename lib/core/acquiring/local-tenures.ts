import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { LockOwner } from '../store/lock-store.js';
import type { StoreLease } from '../holding/store-lease.js';

/** What this process holds of one resource, through its line: one store lease, or several of what can be shared. */
export class LocalStoreLeases {
  #storeLeases: readonly StoreLease[] = NONE;

  get isEmpty(): boolean {
    return this.#storeLeases.length === 0;
  }

  /** The one that it has held longest. */
  get first(): StoreLease | undefined {
    return this.#storeLeases[0];
  }

  add(storeLease: StoreLease): void {
    this.#storeLeases = this.isEmpty ? [storeLease] : [...this.#storeLeases, storeLease];
  }

  delete(storeLease: StoreLease): void {
    const isOnly = this.#storeLeases.length === 1 && this.first === storeLease;
    this.#storeLeases = isOnly ? NONE : this.#storeLeases.filter((other) => other !== storeLease);
  }

  /** The store may have forgotten them. */
  doubt(): void {
    for (const storeLease of this.#storeLeases) storeLease.isInDoubt = true;
  }

  has(storeLease: StoreLease): boolean {
    return this.#storeLeases.includes(storeLease);
  }

  holds(ownership: LockOwner): boolean {
    return this.#storeLeases.some((storeLease) => storeLease.ownership === ownership);
  }

  /** One that a reader may read beside, without a word to the store. */
  sharableWith(options: ResolvedLockOptions): StoreLease | undefined {
    return this.#storeLeases.find((storeLease) => storeLease.mayShareWith(options));
  }

  /** Whether nothing can be granted on these terms before this process releases. */
  excludes({ mode }: ResolvedLockOptions): boolean {
    // Who takes a lock for a semaphore is told so by the store, and at once.
    return mode !== 'semaphore' && this.#storeLeases.some((storeLease) => !storeLease.isShared);
  }
}

const NONE: readonly StoreLease[] = [];
