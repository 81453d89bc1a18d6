import type { DiscoveryService } from '@nestjs/core';
import type { SchedulerRegistry } from '@nestjs/schedule';
import type { CronTimeLike } from '../schedule/nominal-tick.js';

/** What the timer of a cron job asks. */
export interface TimerTime extends CronTimeLike {
  /** @returns the milliseconds until the next tick. @throws where that is a date that is over */
  getTimeout(): number;
}

/** The part of `CronJob` that is needed here, of the package `cron`. */
export interface CronJobLike {
  readonly cronTime: TimerTime;
  readonly isActive: boolean;
  /** Whether it stops after its next tick. */
  runOnce: boolean;
  start(): void;
  stop(): unknown;
  setTime(time: unknown): void;
}

/** What a job of the package `cron` is made of. */
export interface CronJobSource {
  readonly cronTime: unknown;
  readonly timeZone?: string | undefined;
  readonly utcOffset?: number | undefined;
  readonly name?: string;
  readonly onTick: () => unknown;
}

export interface CronJobClass {
  from(source: CronJobSource): CronJobLike;
}

/** What mounts the decorated jobs in `@nestjs/schedule`. It is a provider, but not exported. */
interface Orchestrator {
  addCron(work: () => void, options: { name: string; cronTime: string; disabled: true }): void;
  mountCron(): void;
}

const PROBE = 'probe';

/**
 * Finds the class `CronJob`. The package `cron` is a dependency of `@nestjs/schedule` and not of this package, so it
 * cannot be imported. But any job in the registry is of that class. Where there is none, the scheduler makes one, in a
 * registry of its own.
 *
 * @returns `undefined` for a version of `@nestjs/schedule` that does it in another way
 */
export function cronJobClass(registry: SchedulerRegistry, discovery: DiscoveryService): CronJobClass | undefined {
  for (const job of registry.getCronJobs().values()) {
    const found = classOf(job);
    if (found) return found;
  }
  const orchestrator = discovery.getProviders().find(({ name }) => name === 'SchedulerOrchestrator')?.instance as
    object | undefined;
  if (!orchestrator) return undefined;
  try {
    const ownRegistry = new (registry.constructor as new () => SchedulerRegistry)();
    const own = new (orchestrator.constructor as new (registry: SchedulerRegistry) => Orchestrator)(ownRegistry);
    own.addCron(() => {}, { name: PROBE, cronTime: '* * * * * *', disabled: true });
    own.mountCron();
    return classOf(ownRegistry.getCronJob(PROBE));
  } catch {
    return undefined;
  }
}

function classOf(job: object): CronJobClass | undefined {
  const found = job.constructor as unknown as Partial<CronJobClass>;
  return typeof found.from === 'function' ? (found as CronJobClass) : undefined;
}
