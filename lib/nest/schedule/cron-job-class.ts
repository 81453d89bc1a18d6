import type { DiscoveryService } from '@nestjs/core';
import type { SchedulerRegistry } from '@nestjs/schedule';
import 'reflect-metadata';
import type { CronTimeLike } from './nominal-tick.js';

/** What the timer of a cron job asks. */
export interface TimerTime extends CronTimeLike {
  /** @returns the milliseconds until the next tick. @throws where that is a date that is over */
  getTimeout(): number;
  /** @returns when it is due next. @throws where it never is */
  sendAt(): unknown;
}

/** A schedule as the package `cron` parses it. It refuses what it cannot. */
export type CronTimeClass = new (source: unknown, timeZone?: string | null, utcOffset?: number | null) => TimerTime;

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

export interface CronJobClass {
  /** @param source what a job of the package `cron` is made of */
  from(source: {
    readonly cronTime: unknown;
    readonly timeZone?: string | undefined;
    readonly utcOffset?: number | undefined;
    readonly name?: string;
    readonly onTick: () => unknown;
  }): CronJobLike;
}

/** What mounts the decorated jobs in `@nestjs/schedule`. It is a provider, but not exported. */
interface Orchestrator {
  addCron(work: () => void, options: { name: string; cronTime: string; disabled: true }): void;
  mountCron(): void;
}

const PROBE = 'probe';

/**
 * Finds the class `CronJob`. The package `cron` is a dependency of `@nestjs/schedule` and not of this package, so it
 * cannot be imported. But any job in the registry is of that class. Where there is none, the scheduler makes one.
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
  const job = orchestrator && makeProbe(orchestrator.constructor, registry.constructor);
  return job && classOf(job);
}

/**
 * Finds the class `CronTime` before there is an application, so that a schedule is checked when its class is defined.
 *
 * @returns `undefined` for a version of `@nestjs/schedule` that does it in another way
 */
export function cronTimeClass(scheduleModule: object, registry: object): CronTimeClass | undefined {
  const providers = (Reflect.getMetadata('providers', scheduleModule) ?? []) as unknown[];
  const orchestrator = providers.find(
    (each): each is object => typeof each === 'function' && 'mountCron' in Object(each.prototype),
  );
  return orchestrator && (makeProbe(orchestrator, registry)?.cronTime.constructor as CronTimeClass | undefined);
}

/** A job that the scheduler makes in a registry of its own, and does not start. */
function makeProbe(orchestrator: object, registry: object): CronJobLike | undefined {
  try {
    const ownRegistry = new (registry as new () => SchedulerRegistry)();
    const own = new (orchestrator as new (registry: SchedulerRegistry) => Orchestrator)(ownRegistry);
    own.addCron(() => {}, { name: PROBE, cronTime: '* * * * * *', disabled: true });
    own.mountCron();
    return ownRegistry.getCronJob(PROBE) as unknown as CronJobLike;
  } catch {
    return undefined;
  }
}

function classOf(job: object): CronJobClass | undefined {
  const found = job.constructor as unknown as Partial<CronJobClass>;
  return typeof found.from === 'function' ? (found as CronJobClass) : undefined;
}
