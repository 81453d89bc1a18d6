import type { DiscoveryService } from '@nestjs/core';
import { hasMetadataOf } from '../request/known-handlers.js';

/** The options of `ScheduleModule.forRoot`, by which it leaves out jobs of one kind. */
const SWITCHES = ['cronJobs', 'intervals', 'timeouts'] as const;

type Switch = (typeof SWITCHES)[number];
type Switches = Partial<Record<Switch, boolean>>;

/** The metadata that the decorators of `@nestjs/schedule` leave on a method. */
const METADATA: Record<Switch, string> = {
  cronJobs: 'SCHEDULE_CRON_OPTIONS',
  intervals: 'SCHEDULE_INTERVAL_OPTIONS',
  timeouts: 'SCHEDULE_TIMEOUT_OPTIONS',
};

/** What is known of the `ScheduleModule` of an application. It may come from another copy of `@nestjs/schedule`. */
export class Scheduler {
  readonly isImported: boolean;
  readonly #switches: Switches;

  constructor(discovery: DiscoveryService) {
    const providers = discovery.getProviders();
    const options = providers.find(({ token }) => token === 'SCHEDULE_MODULE_OPTIONS');
    // The registry is public, and the token of the options is not: a later version may rename that.
    this.isImported = options !== undefined || providers.some(({ name }) => name === 'SchedulerRegistry');
    this.#switches = (options?.instance ?? {}) as Switches;
  }

  /** The option by which the module leaves out the jobs of this method's kind. */
  switchedOffBy(method: object): Switch | undefined {
    return SWITCHES.find((name) => this.#switches[name] === false && hasMetadataOf(method, [METADATA[name]]));
  }
}
