import type { LeaseLostError } from '../api/errors.js';
import type { Lease } from '../api/lease.js';
import type { NotLeaderError } from '../api/not-leader-error.js';

/** Why a term ended: its lease was lost, or this instance steps down. */
export type DemotionReason = LeaseLostError | NotLeaderError;

/**
 * The time for which an instance is elected: the lease of the leadership, with a fencing token of its own. `isHeld()` says
 * whether the lease is valid, also while this instance steps down and the work under it ends.
 */
export interface Term extends Lease {
  /**
   * Aborts when this instance is to lead no more: with a `LeaseLostError` no later than the moment somebody else may lead; with
   * a `NotLeaderError` when it steps down, and then nobody else leads before the work has ended.
   */
  readonly signal: AbortSignal;
  /** @throws InvalidLockOptionsError always: a leadership goes to whoever campaigns next */
  transfer(): Promise<string>;
  /**
   * Ends this term in the orderly way of `resign()`, but the candidate stands again, behind the others. Inside of the work of
   * this term it does not wait for the end of that work.
   */
  release(): Promise<void>;
}
