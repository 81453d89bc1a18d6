import { Logger, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { quote, quoteSome } from '../../../kernel/util/quoted.js';
import { prototypeOf, RequestScope, wrappersOf } from '../../../nest/scan.js';
import { muteUnclaimedTicks } from '../../../nest/log/start-log.js';
import type { RedisLockService } from '../../../nest/redis-lock.service.js';
import { DEFAULT_NAME, partsOf } from '../../../nest/service-parts.js';
import { callFor, checkMissedIsKept, type Job, watchJob } from './run-job.js';
import { checkOthers, KnownJobs, ofTransient } from './known-jobs.js';
import { Scheduler } from './scheduler.js';
import { type FoundJob, jobsOf } from './singleton-method.js';
import { entryOf } from '../../../kernel/util/objects.js';

/**
 * Looks at the singleton jobs when the application starts, and watches them from then on. One explorer for each lock
 * service.
 *
 * It refuses two jobs with one name, and one job of two objects: they would claim each other's ticks, so each tick would
 * run only one of them. It refuses jobs that have another name in each process, and those whose schedule was replaced. It
 * warns of jobs without a name if another application could have jobs with the same class and method on the same keys,
 * and of jobs that never run because there is no `ScheduleModule`.
 */
export class SingletonJobExplorer implements OnModuleInit, OnApplicationBootstrap {
  readonly #logger = new Logger('RedisLockModule');
  readonly #jobs = new Map<string, Job>();
  #scheduler: Scheduler | undefined;

  /**
   * @param service returns the lock service, once it is there: wrong names are an error before Redis is waited for
   * @param areKeysShared whether another application could use the same keys by accident
   */
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly lockService: string,
    private readonly service: () => RedisLockService,
    private readonly areKeysShared: boolean,
  ) {
    this.#checkNames();
  }

  /** The decorated jobs of this application that can run: none on request-scoped providers. By name. */
  get jobs(): ReadonlyMap<string, Job> {
    return this.#jobs;
  }

  onModuleInit(): void {
    const known = new KnownJobs();
    const unnamed = new Set<string>();
    for (const wrapper of wrappersOf(this.discovery)) {
      const instance = wrapper.instance as object | null;
      if (instance === null || typeof instance !== 'object') continue;
      const owner = wrapper.isDependencyTreeStatic() ? instance : undefined;
      for (const found of this.#jobsOf(prototypeOf(wrapper), instance)) {
        const { job, method, name } = found;
        known.add(found, owner);
        if (job.name === undefined) unnamed.add(name);
        if (!owner || this.#jobs.has(name)) continue;
        this.#jobs.set(name, this.#decorated(found, instance));
        if (!this.#isSwitchedOff(method)) job.ticks.mount?.(instance);
      }
    }
    if (known.methods.size > 0) muteUnclaimedTicks(this.discovery);
    if (unnamed.size > 0 && this.areKeysShared) this.#warnOfNames([...unnamed]);
    this.#lookForScheduler(known.methods);
    for (const { name, where, options } of this.#jobs.values()) {
      checkMissedIsKept(this.service(), options.missed.onMissed, `The job ${quote(name)} (${where})`);
    }
  }

  onApplicationBootstrap(): void {
    for (const job of this.#jobs.values()) watchJob(this.service(), job);
    partsOf(this.service())?.jobs?.missed.start();
  }

  /**
   * The scheduler refuses two jobs of one name too, with another explanation. So this comes before it does: there may be
   * no objects yet.
   */
  #checkNames(): void {
    const known = new KnownJobs();
    const wrappers = wrappersOf(this.discovery);
    const requestScope = new RequestScope(wrappers);
    for (const wrapper of wrappers) {
      for (const found of this.#jobsOf(prototypeOf(wrapper))) {
        if (wrapper.isTransient) throw ofTransient(found);
        const isScheduled = found.job.name !== undefined && !requestScope.has(wrapper);
        known.add(found, isScheduled ? ((wrapper.instance as object | undefined) ?? wrapper) : undefined);
      }
    }
    if (known.methods.size > 0) {
      checkOthers(
        wrappers.filter((wrapper) => !requestScope.has(wrapper)),
        known.methods,
        new Scheduler(this.discovery),
      );
    }
  }

  /** The jobs of a class that use this lock service. */
  *#jobsOf(prototype: object | undefined, instance = prototype): Generator<FoundJob> {
    for (const found of prototype ? jobsOf(prototype, instance) : []) {
      if ((found.job.lockService ?? DEFAULT_NAME) === this.lockService) yield found;
    }
  }

  #isSwitchedOff(method: object): boolean {
    this.#scheduler ??= new Scheduler(this.discovery);
    return this.#scheduler.switchedOffBy(method) !== undefined;
  }

  /** A warning and no error, because the jobs may be meant to run elsewhere, or this is a test that calls them. */
  #lookForScheduler(methodsByJob: ReadonlyMap<string, object>): void {
    const scheduler = (this.#scheduler ??= new Scheduler(this.discovery));
    if (methodsByJob.size > 0 && !scheduler.isImported) {
      this.#logger.warn(
        `ScheduleModule is not imported, so ${describeJobs([...methodsByJob.keys()])} will never be scheduled. ` +
          `Import ScheduleModule.forRoot() of @nestjs/schedule in the root module.`,
      );
    }
    const switchedOff = new Map<string, string[]>();
    for (const [job, method] of methodsByJob) {
      const by = scheduler.switchedOffBy(method);
      if (by) entryOf(switchedOff, by, () => []).push(job);
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

  #decorated({ job, method, name, where }: FoundJob, instance: object): Job {
    const { method: key, options, ticks } = job;
    const call = (): unknown => (instance as Record<string, () => unknown>)[key]!();
    const schedule = ticks.schedule && (() => (this.#isSwitchedOff(method) ? undefined : ticks.schedule!(instance)));
    return {
      name,
      where,
      options,
      schedule,
      intervalMs: ticks.intervalMs,
      timer: ticks.intervalMs === undefined ? undefined : () => this.#scheduler?.intervalOf(method, job.name),
      tickAt: (wallNow) => ticks.now(instance, wallNow),
      run: (occasion) => callFor(name, occasion, call),
    };
  }
}

function describeJobs(jobs: readonly string[]): string {
  return `${jobs.length === 1 ? 'the singleton job' : `${jobs.length} singleton jobs`} ${quoteSome(jobs)}`;
}
