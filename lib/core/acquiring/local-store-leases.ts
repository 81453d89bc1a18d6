import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { Holder, StoreLease } from '../holding/store-lease.js';
import { fencingTickOf } from '../store/fencing-token.js';
import type { LockOwner } from '../store/lock-store.js';

const NONE: readonly StoreLease[] = [];

/** What a queue holds of its resource: one store lease, or several if the resource can be shared. */
export class LocalStoreLeases {
  #storeLeases: readonly StoreLease[] = NONE;

  get isEmpty(): boolean {
    return this.#storeLeases.length === 0;
  }

  /** The one that was granted first. */
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

  /** What holds the lease with this token, or with one that counts up from it. */
  holderOf(fencingToken: number): Holder | undefined {
    const tick = fencingTickOf(fencingToken);
    const holders = this.#storeLeases.flatMap((storeLease) => storeLease.holders);
    const meant = holders.filter((holder) => fencingTickOf(holder.fencingToken) === tick);
    return meant.find((holder) => holder.fencingToken === fencingToken) ?? meant[0];
  }

  holds(owner: LockOwner): boolean {
    return this.#storeLeases.some((storeLease) => storeLease.owner === owner);
  }

  /** One that another reader may share without asking the store. */
  sharableWith(options: ResolvedLockOptions): StoreLease | undefined {
    return this.#storeLeases.find((storeLease) => storeLease.mayShareWith(options));
  }

  /** Whether nothing can be granted with these options before this process releases. */
  excludes({ mode }: ResolvedLockOptions): boolean {
    // A call that takes a lock for a semaphore asks the store, which refuses it at once.
    return mode !== 'semaphore' && this.#storeLeases.some((storeLease) => !storeLease.isShared);
  }
}
