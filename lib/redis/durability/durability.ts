import type { LockStoreError } from '../../core/store/lock-store.js';

/** How many replicas must have a grant, and how long to wait for them. */
export interface Durability {
  readonly replicas: number;
  readonly timeoutMs: number;
}

/** When what a script has done only counts once replicas have it, too. */
export interface DurableTerms<T> {
  /** Whether somebody will rely on it. */
  readonly isNeeded: (value: T) => boolean;
  /** What to give where too few have it. Without this the command is rejected: it may get lost, or may not. */
  readonly otherwise?: (value: T, error: LockStoreError) => T;
}
