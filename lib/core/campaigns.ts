import { Campaign, type CampaignWorkings } from './campaign.js';
import { type CampaignOptions, checkCampaignOptions } from './campaign-options.js';
import type { Leadership } from './leadership.js';
import { type LockDefaults, resolveLockOptions } from './lock-options.js';
import { checkOwnResource } from './resource.js';

/** The campaigns of one process: for each resource it is one candidate, however many ask. */
export class Campaigns {
  readonly #campaigns = new Map<string, Campaign>();

  constructor(
    private readonly workings: CampaignWorkings,
    private readonly defaults: LockDefaults,
    /** Aborts when the application shuts down. */
    private readonly closing: AbortSignal,
  ) {
    closing.addEventListener('abort', () => {
      for (const campaign of this.#campaigns.values()) campaign.stop('shutdown');
    });
  }

  /** The candidate that stands for this resource. */
  get(resource: string): Leadership | undefined {
    return this.#campaigns.get(resource);
  }

  /** @throws InvalidLockOptionsError */
  campaign(resource: string, options: CampaignOptions = {}): Leadership {
    const name = checkOwnResource(resource, 'campaign');
    checkCampaignOptions(options);
    const { context } = this.workings;
    const running = this.#campaigns.get(name);
    const campaign = running ?? this.#create(name, options.leaseMs);
    // Whatever the caller holds has nothing to do with what the candidate holds.
    context.outside(() => campaign.join(options));
    if (running) return running;
    if (this.closing.aborted) campaign.stop('shutdown');
    context.outside(() => campaign.start());
    return campaign;
  }

  #create(resource: string, leaseMs = this.defaults.leaseMs): Campaign {
    const lock = resolveLockOptions(
      {
        leaseMs,
        waitMs: Infinity,
        watchdog: true,
        // Another process should lead after a resignation, and a release has to be known when resign() returns.
        cohort: 0,
        backgroundRelease: false,
        // Candidates are one for each process, and no load that is to be bounded.
        maxWaiters: Number.MAX_SAFE_INTEGER,
      },
      this.defaults,
    );
    const campaign = new Campaign(resource, lock, this.workings, () => {
      if (this.#campaigns.get(resource) === campaign) this.#campaigns.delete(resource);
    });
    this.#campaigns.set(resource, campaign);
    return campaign;
  }
}
