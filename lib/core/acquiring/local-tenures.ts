import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { Ownership } from '../store/lock-store.js';
import type { Tenure } from '../holding/store-lease.js';

/** What this process holds of one resource, through its line: one tenure, or several of what can be shared. */
export class LocalTenures {
  #tenures: readonly Tenure[] = NONE;

  get isEmpty(): boolean {
    return this.#tenures.length === 0;
  }

  /** The one that it has held longest. */
  get first(): Tenure | undefined {
    return this.#tenures[0];
  }

  add(tenure: Tenure): void {
    this.#tenures = this.isEmpty ? [tenure] : [...this.#tenures, tenure];
  }

  delete(tenure: Tenure): void {
    const isOnly = this.#tenures.length === 1 && this.first === tenure;
    this.#tenures = isOnly ? NONE : this.#tenures.filter((other) => other !== tenure);
  }

  /** The store may have forgotten them. */
  doubt(): void {
    for (const tenure of this.#tenures) tenure.isInDoubt = true;
  }

  has(tenure: Tenure): boolean {
    return this.#tenures.includes(tenure);
  }

  holds(ownership: Ownership): boolean {
    return this.#tenures.some((tenure) => tenure.ownership === ownership);
  }

  /** One that a reader may read beside, without a word to the store. */
  sharableWith(options: ResolvedLockOptions): Tenure | undefined {
    return this.#tenures.find((tenure) => tenure.mayShareWith(options));
  }

  /** Whether nothing can be granted on these terms before this process releases. */
  excludes({ mode }: ResolvedLockOptions): boolean {
    // Who takes a lock for a semaphore is told so by the store, and at once.
    return mode !== 'semaphore' && this.#tenures.some((tenure) => !tenure.isShared);
  }
}

const NONE: readonly Tenure[] = [];
