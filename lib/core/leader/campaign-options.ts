import { checkLockOptions } from '../api/lock-options.js';
import type { DemotionReason, Term } from './term.js';
import { checkFunction, checkKnownOptions } from '../api/validation.js';

/** What a term's beginning and end call. What they throw, or reject with, is told to the observers (`callbackFailed`). */
export interface CampaignCallbacks {
  /**
   * Called when this instance is elected; at once where it leads already. May last as long as the term: it should end when
   * `term.signal` aborts.
   */
  onElected?: (term: Term) => unknown;
  /**
   * Called once for each term, when it ends. While it runs, also when it is async, this instance is not elected again, and
   * where the lease was not lost nobody else is.
   */
  onDemoted?: (reason: DemotionReason, term: Term) => unknown;
}

/** What one call to `campaign` may choose. */
export interface CampaignOptions extends CampaignCallbacks {
  /**
   * The lease of the leadership, in milliseconds: 50 to 24 h. It is renewed while this instance leads; so long nobody leads
   * when it dies. The same on every instance. @default 30000
   */
  leaseMs?: number;
  /** Resigns when it aborts. */
  signal?: AbortSignal;
}

const CAMPAIGN_OPTION_NAMES = [
  'leaseMs',
  'onElected',
  'onDemoted',
  'signal',
] as const satisfies readonly (keyof CampaignOptions)[];

/** @throws InvalidLockOptionsError that names the option, the value and what is allowed */
export function checkCampaignOptions(options: CampaignOptions, where = 'campaign options'): void {
  checkKnownOptions(where, options, CAMPAIGN_OPTION_NAMES);
  const { leaseMs, onElected, onDemoted, signal } = options;
  checkLockOptions({ leaseMs, signal } as CampaignOptions, where);
  checkFunction('onElected', onElected);
  checkFunction('onDemoted', onDemoted);
}
