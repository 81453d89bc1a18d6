import type { DiscoveryService } from '@nestjs/core';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { type ScheduleDecorator, scheduleDecoratorOf } from '../../../nest/decorators/known-handlers.js';

/** The options of `ScheduleModule.forRoot`, by which it leaves out jobs of one kind. */
const SWITCHES = ['cronJobs', 'intervals', 'timeouts'] as const;

type Switch = (typeof SWITCHES)[number];
type Switches = Partial<Record<Switch, boolean>>;

const DECORATORS: Record<Switch, ScheduleDecorator> = { cronJobs: 'Cron', intervals: 'Interval', timeouts: 'Timeout' };

/** A timer that cannot be restarted. */
const NOT_FOUND: Pick<NodeJS.Timeout, 'refresh'> = {
  refresh() {
    return this as NodeJS.Timeout;
  },
};

/** The `ScheduleModule` of an application. It may come from another copy of `@nestjs/schedule`. */
export class Scheduler {
  readonly isImported: boolean;
  readonly #switches: Switches;
  readonly #registry: SchedulerRegistry | undefined;

  constructor(discovery: DiscoveryService) {
    const providers = discovery.getProviders();
    const options = providers.find(({ token }) => token === 'SCHEDULE_MODULE_OPTIONS');
    // The registry is public, and the token of the options is not: a later version may rename that.
    const registry = providers.find(({ name }) => name === 'SchedulerRegistry');
    this.isImported = options !== undefined || registry !== undefined;
    this.#registry = registry?.instance as SchedulerRegistry | undefined;
    this.#switches = (options?.instance ?? {}) as Switches;
  }

  /**
   * Returns the timer of an interval; `undefined` if it is not scheduled. The timer of an interval without a name
   * cannot be found.
   */
  intervalOf(method: object, name: string | undefined): Pick<NodeJS.Timeout, 'refresh'> | undefined {
    if (!this.isImported || this.switchedOffBy(method)) return undefined;
    if (name === undefined) return NOT_FOUND;
    return this.#registry?.doesExist('interval', name)
      ? (this.#registry.getInterval(name) as NodeJS.Timeout)
      : undefined;
  }

  /** The option by which the module leaves out the jobs of this method's kind. */
  switchedOffBy(method: object): Switch | undefined {
    const decorator = scheduleDecoratorOf(method);
    return SWITCHES.find((name) => this.#switches[name] === false && DECORATORS[name] === decorator);
  }
}
