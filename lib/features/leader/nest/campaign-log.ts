import type { Logger } from '@nestjs/common';
import type { LockEventOf } from '../../../kernel/events/events.js';
import type { LockClient } from '../../../kernel/lock-client.js';
import { quote, quoteSome } from '../../../kernel/util/quoted.js';
import { loggerOf } from '../../../nest/log/logger-of.js';

/** The delay of the summary after the start of the application: campaigns begin in hooks that run after it. */
const SUMMARY_AFTER_MS = 1_000;

/**
 * Logs for which leaderships this process campaigns: one line when the application has started, and later ones on
 * debug. Most candidates wait for as long as they live, and there may be many of them.
 */
export class CampaignLog {
  readonly #logger: Logger;
  /** The leaderships until the summary. */
  #names: Set<string> | undefined = new Set();

  constructor(
    private readonly client: LockClient,
    name: string,
  ) {
    this.#logger = loggerOf(name);
    client.observers.add(this.#observe, ['campaigning']);
  }

  /** The application has started. */
  started(): void {
    const { closing } = this.client;
    if (closing.aborted) return;
    const timer = setTimeout(() => this.#summarize(), SUMMARY_AFTER_MS).unref();
    closing.addEventListener('abort', () => clearTimeout(timer), { once: true });
  }

  readonly #observe = ({ leadership }: LockEventOf<'campaigning'>): void => {
    if (this.#names) this.#names.add(leadership);
    else this.#logger.debug(`Campaigns for the leadership ${quote(leadership)}.`);
  };

  #summarize(): void {
    const names = [...(this.#names ?? [])].filter((name) => this.client.leadership(name));
    this.#names = undefined;
    if (names.length === 0) return;
    const led = names.filter((name) => this.client.leadership(name)!.isLeader()).length;
    if (names.length === 1) {
      const state = led === 1 ? 'leads' : 'waits to be elected';
      this.#logger.log(`Campaigns for the leadership ${quote(names[0]!)}, and ${state}.`);
      return;
    }
    const leads = led === 0 ? 'none' : led === names.length ? 'all' : led;
    this.#logger.log(`Campaigns for ${names.length} leaderships: ${quoteSome(names)}. Leads ${leads} of them.`);
  }
}
