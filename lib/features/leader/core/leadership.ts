import type { LeaseLostError, NotLeaderError } from '../../../kernel/api/lease-errors.js';
import type { Lease } from '../../../kernel/api/lease.js';
import { LOCK_OPTIONS } from '../../../kernel/api/lock-options.js';
import { Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';

/** Why a term ended: its lease was lost, or this instance steps down. */
export type DemotionReason = LeaseLostError | NotLeaderError;

/**
 * The time for which an instance leads: the lease of the leadership, with its own fencing token. `isHeld()` returns
 * true while the lease is valid, even while this instance steps down and its work ends.
 */
export interface Term extends Lease {
  /**
   * Aborts when this instance must stop leading. If the lease is lost, it aborts with a `LeaseLostError`, no later than
   * another instance may lead. If this instance steps down, it aborts with a `NotLeaderError`, and no other instance
   * leads before the work has ended.
   */
  readonly signal: AbortSignal;
  /**
   * Ends this term like `resign()`, but this instance campaigns again, behind the other candidates. If you call it
   * inside the work of the term, it doesn't wait for that work to end.
   */
  release(): Promise<void>;
}

/** Work that only the leader does. */
export type LeaderWork<T> = (term: Term) => T | Promise<T>;

/** The campaign of this instance for a leadership. One candidate at a time leads. */
export interface Leadership {
  /** The name passed to `campaign`. */
  readonly name: string;
  /** The lock that the leader holds, `leader:<name>`: the name for `inspect`, `list`, `forceRelease` and `current`. */
  readonly resource: string;
  /** Returns true if this instance leads now, by the monotonic clock of this process. Needs no round trip. */
  isLeader(): boolean;
  /** The signal of the term, see {@link Term}. Already aborted while this instance does not lead. */
  readonly signal: AbortSignal;
  /**
   * The fencing token of the term. It grows from term to term, across all instances. `undefined` while this instance
   * does not lead.
   */
  readonly fencingToken: number | undefined;
  /**
   * Resolves to the current term, or the next one.
   *
   * @throws NotLeaderError if the campaign has ended, or ends before this instance is elected
   */
  whenElected(): Promise<Term>;
  /**
   * Runs the work if this instance leads, and resolves to its result; otherwise resolves to `undefined` without running
   * it. Inside, `locks.current(leadership.resource)` is the term. If this instance steps down, it waits for the work to
   * end.
   *
   * @throws InvalidLockOptionsError if the work is not a function
   * @throws LeaseLostError if the term is lost before the work settles. An error of the work itself is thrown instead
   */
  run<T>(work: LeaderWork<T>): Promise<T | undefined>;
  /**
   * Steps down, if this instance leads, and ends the campaign. The signal aborts, `isLeader()` returns false, and no
   * new work starts. Once callbacks and running work have ended, the next candidate is notified, and the promise
   * resolves. If you call it inside the work or a callback of the term, it does not wait for them. Never throws: a
   * failed release is reported to observers.
   */
  resign(): Promise<void>;
}

/** Callbacks for the beginning and the end of a term. Their errors are reported to the observers (`callbackFailed`). */
export interface CampaignCallbacks {
  /**
   * Called with the term when this instance is elected, or at once if it already leads. The function may run for the
   * whole term, and should end when `term.signal` aborts.
   *
   * @default none
   */
  onElected?: (term: Term) => unknown;
  /**
   * Called with the reason and the term when a term ends. Until the function has returned, or its promise has settled,
   * no instance is elected; if the lease was lost, other instances can be.
   *
   * @default none
   */
  onDemoted?: (reason: DemotionReason, term: Term) => unknown;
}

/** Options of one call to `campaign`. */
export interface CampaignOptions extends CampaignCallbacks {
  /**
   * The length of the leadership's lease, which is renewed while this instance leads. If the leader dies, there is no
   * leader for up to this long. Use the same value on every instance.
   *
   * @allowed 50 ms to 24 h
   * @default 15000
   */
  leaseMs?: number;
  /** When this signal aborts, the campaign ends as if you had called `resign()`. @default none */
  signal?: AbortSignal;
}

export const CAMPAIGN_OPTIONS = new OptionTable({
  leaseMs: LOCK_OPTIONS.options.leaseMs,
  onElected: Option.callback<NonNullable<CampaignOptions['onElected']>>(),
  onDemoted: Option.callback<NonNullable<CampaignOptions['onDemoted']>>(),
  signal: Option.abortSignal(),
} satisfies OptionsOf<CampaignOptions>);
