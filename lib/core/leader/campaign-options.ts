import { LOCK_OPTIONS } from '../api/lock-options.js';
import { abortSignal, callback, type OptionsOf, OptionTable } from '../api/option-table.js';
import type { DemotionReason, Term } from './leadership.js';

/** What a term's beginning and end call. What they throw, or reject with, is told to the observers (`callbackFailed`). */
export interface CampaignCallbacks {
  /**
   * Called with the term when this instance is elected, or at once if it leads already. It may last as long as the
   * term, and should end when `term.signal` aborts.
   *
   * @default none
   */
  onElected?: (term: Term) => unknown;
  /**
   * Called with the reason and the term, once for each term, when it ends. While it runs, also when it is async, this
   * instance is not elected again. Unless the lease was lost, no other instance is elected either.
   *
   * @default none
   */
  onDemoted?: (reason: DemotionReason, term: Term) => unknown;
}

/** What one call to `campaign` may choose. */
export interface CampaignOptions extends CampaignCallbacks {
  /**
   * The lease of the leadership, which is renewed while this instance leads. When the leader dies, no one leads for
   * this long. Every instance must state the same value.
   *
   * @allowed 50 ms to 24 h
   * @default 30000
   */
  leaseMs?: number;
  /** Resigns when it aborts. @default none */
  signal?: AbortSignal;
}

export const CAMPAIGN_OPTIONS = new OptionTable({
  leaseMs: LOCK_OPTIONS.options.leaseMs,
  onElected: callback<NonNullable<CampaignOptions['onElected']>>(),
  onDemoted: callback<NonNullable<CampaignOptions['onDemoted']>>(),
  signal: abortSignal(),
} satisfies OptionsOf<CampaignOptions>);

/** @throws InvalidLockOptionsError that names the option, the value and what is allowed */
export function checkCampaignOptions(options: CampaignOptions, where = 'campaign options'): void {
  CAMPAIGN_OPTIONS.check(where, options);
}
