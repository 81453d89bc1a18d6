import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { LocalHolder, StoreLease } from '../holding/store-lease.js';
import { fencingTickOf } from '../store/fencing-token.js';
import type { LockOwner } from '../store/lock-store.js';

const NONE: readonly StoreLease[] = [];

/**
 * The store leases of a queue: nearly always one, several if the resource can be shared. Of permits it may be
 * thousands, so no operation scans them all.
 */
export class LocalStoreLeases {
  #only: StoreLease | undefined;
  #several: Set<StoreLease> | undefined;

  get isEmpty(): boolean {
    return this.#only === undefined && this.#several === undefined;
  }

  get first(): StoreLease | undefined {
    return this.#only ?? this.#several?.values().next().value;
  }

  add(storeLease: StoreLease): void {
    if (this.isEmpty) this.#only = storeLease;
    else {
      this.#several = (this.#several ?? new Set(this.#all)).add(storeLease);
      this.#only = undefined;
    }
  }

  delete(storeLease: StoreLease): void {
    if (this.#only === storeLease) this.#only = undefined;
    else if (this.#several?.delete(storeLease) && this.#several.size === 1) {
      this.#only = this.first;
      this.#several = undefined;
    }
  }

  doubt(): void {
    for (const storeLease of this.#all) storeLease.isInDoubt = true;
  }

  has(storeLease: StoreLease): boolean {
    return this.#only === storeLease || (this.#several?.has(storeLease) ?? false);
  }

  holderOf(fencingToken: number): LocalHolder | undefined {
    const tick = fencingTickOf(fencingToken);
    const holders = [...this.#all].flatMap((storeLease) => storeLease.holders);
    const meant = holders.filter((holder) => fencingTickOf(holder.fencingToken) === tick);
    return meant.find((holder) => holder.fencingToken === fencingToken) ?? meant[0];
  }

  holds(owner: LockOwner): boolean {
    return this.#find((storeLease) => storeLease.owner === owner) !== undefined;
  }

  /** Finds one that another reader may share without asking the store. */
  sharableWith(options: ResolvedLockOptions): StoreLease | undefined {
    return options.mode === 'read' ? this.#find((storeLease) => storeLease.mayShareWith(options)) : undefined;
  }

  /** Returns true if nothing can be granted with these options before this process releases. */
  excludes({ mode }: ResolvedLockOptions): boolean {
    // A call that takes a lock for a semaphore asks the store, which refuses it at once.
    return mode !== 'semaphore' && this.#find(({ isShared }) => !isShared) !== undefined;
  }

  /** Called at each hand-over, so it allocates no array or iterator for a single lease. */
  #find(isMeant: (storeLease: StoreLease) => boolean): StoreLease | undefined {
    if (this.#only) return isMeant(this.#only) ? this.#only : undefined;
    for (const storeLease of this.#several ?? NONE) if (isMeant(storeLease)) return storeLease;
    return undefined;
  }

  get #all(): Iterable<StoreLease> {
    return this.#several ?? (this.#only ? [this.#only] : NONE);
  }
}
