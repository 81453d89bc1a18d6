import { Campaign, type CampaignDeps } from './campaign.js';
import { CAMPAIGN_OPTIONS, type CampaignOptions, type Leadership } from './leadership.js';
import { resolveLockOptions } from '../../../kernel/api/lock-options.js';
import { leaderResource } from '../../../kernel/api/resource.js';

/** The campaigns of one process: at most one for each leadership, however many callers ask. */
export class Campaigns {
  /** By the names that the users gave. */
  readonly #campaigns = new Map<string, Campaign>();

  constructor(private readonly deps: CampaignDeps) {
    deps.closing.addEventListener('abort', () => {
      for (const campaign of this.#campaigns.values()) campaign.stop('shutdown');
    });
  }

  list(): Campaign[] {
    return [...this.#campaigns.values()];
  }

  /** The campaign for the leadership of this name. */
  get(name: string): Leadership | undefined {
    return this.#campaigns.get(name);
  }

  campaign(name: string, options: CampaignOptions = {}): Leadership {
    const resource = leaderResource(name, 'campaign');
    CAMPAIGN_OPTIONS.check('campaign options', options);
    const { context } = this.deps;
    const running = this.#campaigns.get(name);
    const campaign = running ?? this.#create(name, resource, options.leaseMs);
    // The campaign does not run in the async context of the caller, so it does not re-enter what the caller holds.
    context.outside(() => campaign.join(options));
    if (running) return running;
    if (this.deps.closing.aborted) campaign.stop('shutdown');
    context.outside(() => campaign.start());
    return campaign;
  }

  #create(name: string, resource: string, leaseMs = this.deps.defaults.leaseMs): Campaign {
    const lock = resolveLockOptions(
      {
        leaseMs,
        waitMs: Infinity,
        unavailableMs: Infinity,
        watchdog: true,
        // Another process should lead after a resignation, and a release has to be known when resign() returns.
        strictOrder: true,
        backgroundRelease: false,
        // One campaign for each process is no load that needs a bound.
        maxWaiters: Number.MAX_SAFE_INTEGER,
      },
      this.deps.defaults,
    );
    // Its resource begins with `leader:`, so no method has this group.
    const campaign = new Campaign(name, resource, { ...lock, group: resource }, this.deps, () => {
      if (this.#campaigns.get(name) === campaign) this.#campaigns.delete(name);
    });
    this.#campaigns.set(name, campaign);
    return campaign;
  }
}
