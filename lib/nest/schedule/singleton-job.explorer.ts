import { Logger, type OnModuleInit } from '@nestjs/common';
import { type DiscoveryService, MetadataScanner } from '@nestjs/core';
import 'reflect-metadata';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import type { TickSchedule } from '../../core/jobs/tick-schedule.js';
import { quote, quoteSome } from '../../core/util/quoted.js';
import { DEFAULT_NAME } from '../tokens.js';
import { Scheduler } from './scheduler.js';
import type { JobTick } from './run-job.js';
import type { ResolvedJobOptions } from './singleton-options.js';

/** The metadata key of a singleton job, on the method. */
export const SINGLETON_JOB = 'nestjs-redis-lock:singleton-job';

/** A method that is a singleton job. */
export interface SingletonJob {
  /** The name of the job, if it has one. */
  readonly name: string | undefined;
  readonly method: string;
  readonly lockService: string | undefined;
  readonly options: ResolvedJobOptions;
  readonly ticks: {
    now(instance: object, wallNow: number): JobTick;
    schedule?(instance: object): TickSchedule | undefined;
  };
}

/** A singleton job of this application, and the object that has its method. */
export interface DecoratedJob {
  /** The name of the job in the fleet. */
  readonly name: string;
  /** The class and the method, for messages. */
  readonly where: string;
  /** Calls the method, with all decorators that it has. */
  readonly call: () => unknown;
  readonly options: ResolvedJobOptions;
  /** When its ticks are due, as it is scheduled at the moment. Not set where ticks have no order. */
  readonly schedule: (() => TickSchedule | undefined) | undefined;
  /** The tick that fires at a time. @param wallNow milliseconds since the Unix epoch */
  readonly tickAt: (wallNow: number) => JobTick;
}

/** Returns the name of the job in the fleet: its own, or class and method. */
export function jobName({ name, method }: SingletonJob, instance: object): string {
  return name ?? `${instance.constructor.name}.${method}`;
}

/** The jobs of a class, with their names in the fleet. */
export function jobsOf(prototype: object): { name: string; lockService: string | undefined }[] {
  return new MetadataScanner().getAllMethodNames(prototype).flatMap((key) => {
    const method = (prototype as Record<string, unknown>)[key];
    if (typeof method !== 'function') return [];
    const job = Reflect.getMetadata(SINGLETON_JOB, method) as SingletonJob | undefined;
    return job
      ? [{ name: job.name ?? `${prototype.constructor.name}.${job.method}`, lockService: job.lockService }]
      : [];
  });
}

/**
 * Looks at the singleton jobs when the application starts. One explorer for each lock service.
 *
 * It refuses two jobs with one name: they would claim each other's ticks, so each tick would run only one of them. It
 * warns of jobs without a name if another application could have jobs with the same class and method on the same keys,
 * and of jobs that never run because there is no `ScheduleModule`.
 */
export class SingletonJobExplorer implements OnModuleInit {
  readonly #logger = new Logger('RedisLockModule');
  readonly #scanner = new MetadataScanner();
  readonly #discovery: DiscoveryService;
  readonly #lockService: string;
  readonly #areKeysShared: boolean;
  readonly #jobs = new Map<string, DecoratedJob>();
  #scheduler: Scheduler | undefined;

  /** @param areKeysShared whether another application could use the same keys by accident */
  constructor(discovery: DiscoveryService, lockService: string, areKeysShared: boolean) {
    this.#discovery = discovery;
    this.#lockService = lockService;
    this.#areKeysShared = areKeysShared;
  }

  /** The decorated jobs of this application that can run: none on request-scoped providers. By name. */
  get jobs(): ReadonlyMap<string, DecoratedJob> {
    return this.#jobs;
  }

  onModuleInit(): void {
    const methodsByJob = new Map<string, object>();
    const unnamed = new Set<string>();
    for (const wrapper of [...this.#discovery.getProviders(), ...this.#discovery.getControllers()]) {
      const instance = wrapper.instance as object | null;
      if (instance === null || typeof instance !== 'object' || !Object.getPrototypeOf(instance)) continue;
      for (const key of this.#scanner.getAllMethodNames(Object.getPrototypeOf(instance))) {
        const job = this.#check(instance, key, methodsByJob, unnamed);
        if (job && !this.#jobs.has(job.name) && wrapper.isDependencyTreeStatic()) this.#jobs.set(job.name, job);
      }
    }
    if (unnamed.size > 0 && this.#areKeysShared) this.#warnOfNames([...unnamed]);
    this.#lookForScheduler(methodsByJob);
  }

  #isSwitchedOff(method: object): boolean {
    this.#scheduler ??= new Scheduler(this.#discovery);
    return this.#scheduler.switchedOffBy(method) !== undefined;
  }

  /** A warning and no error, because the jobs may be meant to run elsewhere, or this is a test that calls them. */
  #lookForScheduler(methodsByJob: ReadonlyMap<string, object>): void {
    const scheduler = new Scheduler(this.#discovery);
    if (methodsByJob.size > 0 && !scheduler.isImported) {
      this.#logger.warn(
        `ScheduleModule is not imported, so ${describeJobs([...methodsByJob.keys()])} will never be scheduled. ` +
          `Import ScheduleModule.forRoot() of @nestjs/schedule in the root module.`,
      );
    }
    const switchedOff = new Map<string, string[]>();
    for (const [job, method] of methodsByJob) {
      const by = scheduler.switchedOffBy(method);
      if (by) switchedOff.set(by, [...(switchedOff.get(by) ?? []), job]);
    }
    for (const [by, jobs] of switchedOff) {
      this.#logger.log(`ScheduleModule has ${by}: false, so ${describeJobs(jobs)} will not be scheduled here.`);
    }
  }

  #warnOfNames(jobs: readonly string[]): void {
    this.#logger.warn(
      `${jobs.length === 1 ? 'A singleton job has' : 'Singleton jobs have'} no name: ${quoteSome(jobs)}. ` +
        `Another application on this Redis with the same class and method names would take their ticks. ` +
        `Give each job a name, or this application a keyPrefix of its own.`,
    );
  }

  #check(
    instance: object,
    key: string,
    methodsByJob: Map<string, object>,
    unnamed: Set<string>,
  ): DecoratedJob | undefined {
    const method = (instance as Record<string, unknown>)[key];
    if (typeof method !== 'function') return undefined;
    const job = Reflect.getMetadata(SINGLETON_JOB, method) as SingletonJob | undefined;
    if (!job || (job.lockService ?? DEFAULT_NAME) !== this.#lockService) return undefined;
    const name = jobName(job, instance);
    if (job.name === undefined) unnamed.add(name);
    if (methodsByJob.has(name) && methodsByJob.get(name) !== method) {
      throw new InvalidLockOptionsError(
        `Two singleton jobs are called ${quote(name)}. The second one is ${instance.constructor.name}.${key}. ` +
          `They would take each other's ticks. Give one of them another name.`,
        'name',
      );
    }
    methodsByJob.set(name, method);
    const call = (): unknown => (instance as Record<string, () => unknown>)[key]!();
    const { options, ticks } = job;
    const schedule = ticks.schedule && (() => (this.#isSwitchedOff(method) ? undefined : ticks.schedule!(instance)));
    const tickAt = (wallNow: number): JobTick => ticks.now(instance, wallNow);
    return { name, where: `${instance.constructor.name}.${key}`, call, options, schedule, tickAt };
  }
}

function describeJobs(jobs: readonly string[]): string {
  return `${jobs.length === 1 ? 'the singleton job' : `${jobs.length} singleton jobs`} ${quoteSome(jobs)}`;
}
