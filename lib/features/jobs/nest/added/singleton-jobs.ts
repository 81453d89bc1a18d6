import { Logger, type OnApplicationBootstrap, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { InvalidLockOptionsError, LockError, LockShutdownError } from '../../../../kernel/api/errors.js';
import { type JobInfo, JobNotFoundError, type JobRun } from '../../core/job-info.js';
import type { JobRecords } from '../../core/job-records.js';
import type { AskedEnding, Operator } from '../../core/operator-requests.js';
import { jobResource } from '../../../../kernel/api/resource.js';
import { checkFunction } from '../../../../kernel/api/validation.js';
import { quote } from '../../../../kernel/util/quoted.js';
import { addInjected, clockOf, groupsOf, partsOf } from '../../../../nest/service-parts.js';
import type { RedisLockService } from '../../../../nest/redis-lock.service.js';
import {
  checkMissedIsKept,
  type Job,
  type JobMethod,
  jobRecordsOf,
  manualTrigger,
  type RunTrigger,
  watchJob,
} from '../run-job.js';
import type { SingletonJobExplorer } from '../singleton-job.explorer.js';
import {
  type AddedCronJob,
  type AddedJob,
  checkPauseOptions,
  HISTORY_OPTIONS,
  type HistoryOptions,
  type PauseOptions,
  RESUME_OPTIONS,
  type ResumeOptions,
  RUN_NOW_OPTIONS,
  type RunNowOptions,
} from './job-options.js';
import { AddedJobs } from './added-jobs.js';
import { type CronJobLike, setCronTime } from '../job-schedules.js';
import type { JobPause } from '../../core/job-state.js';

interface JobsDeps {
  readonly service: RedisLockService;
  readonly explorer: SingletonJobExplorer;
  readonly discovery: DiscoveryService;
}

/**
 * The singleton jobs of this application: methods with `@SingletonCron`, `@SingletonInterval` or `@SingletonTimeout`,
 * and jobs added while it runs. Each lock service has its own `SingletonJobs`.
 *
 * ```ts
 * constructor(private readonly jobs: SingletonJobs) {}
 * await this.jobs.runNow('nightly-report', { by: 'ann' });
 * this.jobs.add({ name: `digest-${id}`, cron: '0 7 * * *', timeZone }, () => this.sendDigest(id));
 * ```
 */
export class SingletonJobs implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  readonly #deps: JobsDeps;
  #added: AddedJobs | undefined;
  /** As `@nestjs/schedule` logs the errors of its jobs. */
  readonly #logger = new Logger('Scheduler');
  #state: 'starting' | 'running' | 'closed' = 'starting';

  /** @internal */
  constructor(deps: JobsDeps) {
    this.#deps = deps;
    const { service } = deps;
    const parts = partsOf(service);
    if (parts) parts.ownJobs = { names: () => this.#names(), find: (name) => this.#find(name) };
  }

  /**
   * Adds a job while the application runs. It works like a decorated job: each tick runs on one of the instances that
   * have added it, and errors of the work are logged. The `SchedulerRegistry` of `@nestjs/schedule` lists it under its
   * name. A job with `at` is removed after its run.
   *
   * @param work the function to call with each run
   * @throws InvalidLockOptionsError if an option is invalid, another job has this name, the application has not started
   *   yet, or `ScheduleModule` is missing; nothing has changed then
   * @throws LockShutdownError if the application is shutting down
   */
  add(job: AddedJob, work: JobMethod): void {
    this.#checkRuns('add');
    checkFunction('work of SingletonJobs.add', work);
    const scheduled = this.#scheduled();
    const decorated = this.#deps.explorer.jobs.get(job?.name);
    if (decorated) {
      throw new InvalidLockOptionsError(
        `A job called ${quote(job.name)} is declared by a decorator on ${decorated.where}. Give this one another name.`,
        'name',
      );
    }
    const { onMissed } = (job ?? {}) as Partial<AddedCronJob>;
    checkMissedIsKept(this.#deps.service, onMissed, `The job ${quote(String(job?.name))}`);
    const added = scheduled.add(job, work);
    groupsOf(this.#deps.service)?.register('job', added.name);
    // One on a single date misses no tick, and leaves no trace.
    if (added.schedule || job.intervalMs !== undefined) watchJob(this.#deps.service, added);
  }

  /**
   * Removes a job that {@link add} has added on this instance, so that it no longer fires. A run in progress continues,
   * and so does a tick that has already fired.
   *
   * @throws JobNotFoundError if there is no such job on this instance
   * @throws InvalidLockOptionsError if a decorator declares the job
   */
  remove(name: string): void {
    this.#checkAdded('remove', name);
    this.#scheduled().remove(name);
    partsOf(this.#deps.service)?.jobs?.missed.remove(name);
  }

  /**
   * Gives a cron job another schedule on this instance, from its next tick on. Call it on every instance, because each
   * instance follows its own schedule. A decorated job needs a `name`. A run in progress continues.
   *
   * @param cron a cron expression in the job's time zone, or a date. A job with `at` accepts only dates
   * @throws JobNotFoundError if this instance has no such job; a job with `at` is gone once another instance has
   *   claimed its tick
   * @throws InvalidLockOptionsError if the new schedule is invalid, or the job has no cron expression; it then keeps
   *   its schedule
   */
  reschedule(name: string, cron: AddedCronJob['cron']): void {
    this.#checkRuns('reschedule');
    jobResource(name);
    const scheduled = this.#scheduled();
    const { registry } = scheduled;
    if (!this.#find(name)) throw JobNotFoundError.unknown(name, 'This instance', this.#names(), GONE_AFTER_DATE);
    if (!registry.doesExist('cron', name)) {
      throw new InvalidLockOptionsError(
        `The job ${quote(name)} has no cron expression in the SchedulerRegistry. Remove it and add it again, or give ` +
          `its @SingletonCron a name.`,
        'name',
      );
    }
    scheduled.checkReschedule(name, cron);
    const job = registry.getCronJob(name) as unknown as CronJobLike;
    const { timeZone, utcOffset } = job.cronTime;
    const place = { where: `SingletonJobs.reschedule(${quote(name)})`, option: 'cron' };
    setCronTime(job, { cronTime: cron, timeZone, utcOffset }, place);
    // At its next poll, this instance registers the new schedule.
    partsOf(this.#deps.service)?.jobs?.missed.unknown(name);
  }

  /**
   * Runs a job now, on this instance, under the job's lock, without using up a tick of its schedule. The run has
   * `manual: true`. If an earlier run is still in progress on any instance, the job's `overlap` decides: with `'wait'`,
   * the new run starts afterwards; otherwise the call is rejected. A pause does not prevent the run, and no instance
   * reruns it after a crash.
   *
   * @returns what the job returned
   * @throws LockBusyError if the call is rejected because an earlier run has not ended
   * @throws JobNotFoundError if this instance has no such job; `instances` lists the instances that have it
   * @throws LockUnavailableError if Redis does not answer within the job's `waitMs`
   * @throws LockShutdownError if the application is shutting down
   * @throws the error of the job
   */
  async runNow(name: string, options: RunNowOptions = {}): Promise<unknown> {
    this.#checkRuns('runNow');
    RUN_NOW_OPTIONS.check('runNow', options);
    jobResource(name);
    const job = this.#find(name);
    const records = jobRecordsOf(this.#deps.service);
    if (!job) throw await records.notHere(name, new Set(this.#names()));
    records.tell(name, { ...options, command: 'runNow' });
    return this.#run(job, manualTrigger(clockOf(this.#deps.service).wallNow(), options.by));
  }

  async #run(job: Job, occasion: RunTrigger): Promise<unknown> {
    const { result, isTaken } = await job.run(occasion);
    if (isTaken) return result;
    throw new InvalidLockOptionsError(
      `${job.where} was called, but the job did not run: a decorator above the job decorator returned without ` +
        'calling the method, or replaced it. Move that decorator below the job decorator. If it is @LeaderOnly, you can ' +
        'also run the job on the instance that leads.',
      'decorator',
    );
  }

  /**
   * Returns all jobs under the `keyPrefix` of this lock service, sorted by name: the jobs of this application, and jobs
   * of other applications that Redis knows of. A job of `runSingleton` is not listed until it is paused, because no
   * instance registers it; but the other methods accept its name.
   *
   * @throws LockUnavailableError if Redis is unreachable, or on a quorum, which keeps no records of jobs
   * @throws InvalidLockOptionsError if the application has not started yet, like all methods of this class
   */
  async list(): Promise<JobInfo[]> {
    this.#checkStarted('list');
    return jobRecordsOf(this.#deps.service).list(new Set(this.#names()));
  }

  /**
   * Returns the state of a job across all instances.
   *
   * @throws JobNotFoundError if there is no such job
   * @throws LockUnavailableError like {@link list}
   */
  async get(name: string): Promise<JobInfo> {
    return this.#recordsFor('get', name).get(name, new Set(this.#names()));
  }

  /**
   * Returns the latest runs and missed ticks of a job, newest first. A run whose process died is shown as `crashed`
   * once its lease has expired. Redis keeps the latest `historySize` entries.
   *
   * @throws JobNotFoundError if there is no such job
   * @throws LockUnavailableError like {@link list}
   */
  async history(name: string, options: HistoryOptions = {}): Promise<JobRun[]> {
    HISTORY_OPTIONS.check('history', options);
    const { limit } = HISTORY_OPTIONS.filled(options);
    return this.#recordsFor('history', name).history(name, new Set(this.#names()), limit);
  }

  /**
   * Stops a job for the whole fleet: no instance runs its ticks until {@link resume}, or until `until`. A run in
   * progress continues, and {@link runNow} still works. A tick that is due during the pause is skipped with the reason
   * `paused`, and does not count as missed. A new pause replaces the earlier one.
   *
   * @returns the replaced pause, if there was one
   * @throws JobNotFoundError if there is no such job
   * @throws LockUnavailableError like {@link list}
   */
  async pause(name: string, options: PauseOptions = {}): Promise<JobPause | undefined> {
    checkPauseOptions(options, clockOf(this.#deps.service).wallNow());
    const records = this.#recordsFor('pause', name);
    const { until, ...operator } = options;
    const pause = { ...operator, ...(until !== undefined && { until: Number(until) }) };
    return records.pause(name, new Set(this.#names()), pause);
  }

  /**
   * Ends a pause: the ticks that are due from now on run. Ticks that were due during the pause do not.
   *
   * @returns the pause that ended, or `undefined` if the job was not paused
   * @throws JobNotFoundError if there is no such job
   * @throws LockUnavailableError like {@link list}
   */
  async resume(name: string, options: ResumeOptions = {}): Promise<JobPause | undefined> {
    RESUME_OPTIONS.check('resume', options);
    return this.#recordsFor('resume', name).resume(name, new Set(this.#names()), options);
  }

  /** Called by Nest. */
  onModuleInit(): void {
    const { service, discovery } = this.#deps;
    const found = discovery.getProviders().find((provider) => provider.name === 'SchedulerRegistry');
    if (found?.instance) this.#added = new AddedJobs(found.instance as SchedulerRegistry, discovery, service);
  }

  /** Called by Nest. From now on, jobs can be added. */
  onApplicationBootstrap(): void {
    this.#state = 'running';
    partsOf(this.#deps.service)?.jobs?.records.requests.serve({
      has: (name) => this.#state === 'running' && this.#find(name) !== undefined,
      run: (name, operator, id) => this.#runAsked(name, operator, id),
    });
  }

  /** Runs a job as {@link runNow} does, for another process. */
  async #runAsked(name: string, operator: Operator, id: string): Promise<AskedEnding> {
    const { service } = this.#deps;
    let isBegun = false;
    const begins = (): void => void (isBegun = true);
    try {
      const job = this.#find(name);
      if (!job) throw JobNotFoundError.unknown(name, 'This instance', this.#names());
      jobRecordsOf(service).tell(name, { ...operator, command: 'runNow' });
      await this.#run(job, { ...manualTrigger(clockOf(service).wallNow(), operator.by, id), begins });
      return { outcome: 'ok' };
    } catch (error) {
      const kind = error instanceof Error ? error.name : typeof error;
      if (!isBegun) return { outcome: 'refused', message: error instanceof LockError ? error.message : kind };
      this.#logger.error(error);
      return { outcome: 'error', message: kind };
    }
  }

  /** Called by Nest. From now on, no job can be added. The scheduler ends the timers of all jobs. */
  onModuleDestroy(): void {
    this.#state = 'closed';
  }

  #recordsFor(method: string, name: string): JobRecords {
    this.#checkStarted(method);
    jobResource(name);
    return jobRecordsOf(this.#deps.service);
  }

  #scheduled(): AddedJobs {
    if (this.#added) return this.#added;
    throw new InvalidLockOptionsError(
      'SingletonJobs cannot find a SchedulerRegistry. Import ScheduleModule.forRoot() of @nestjs/schedule in the root module.',
      'imports',
    );
  }

  #checkRuns(method: string): void {
    if (this.#state === 'closed') throw new LockShutdownError('', `SingletonJobs.${method} was refused`);
    this.#checkStarted(method);
  }

  /** Before that, the decorated jobs are not known yet. */
  #checkStarted(method: string): void {
    if (this.#state !== 'starting') return;
    throw new InvalidLockOptionsError(
      `SingletonJobs.${method} was called before the application had started. Call it in onApplicationBootstrap() or ` +
        'later. In a test, call app.init() first.',
      method,
    );
  }

  #checkAdded(method: string, name: string): void {
    this.#checkRuns(method);
    jobResource(name);
    if (this.#scheduled().find(name)) return;
    const decorated = this.#deps.explorer.jobs.get(name);
    if (!decorated) throw JobNotFoundError.unknown(name, 'This instance', this.#names());
    throw new InvalidLockOptionsError(
      `The job ${quote(name)} is declared by a decorator on ${decorated.where}, so it cannot be removed. Pause it ` +
        'instead, or stop it in the SchedulerRegistry.',
      'name',
    );
  }

  #find(name: string): Job | undefined {
    return this.#added?.find(name) ?? this.#deps.explorer.jobs.get(name);
  }

  /** The names of the jobs that this instance can run. */
  #names(): string[] {
    return [...this.#deps.explorer.jobs.keys(), ...(this.#added?.names() ?? [])];
  }
}

/** If another instance claimed the tick, that is before the run has ended. */
const GONE_AFTER_DATE =
  ' A job that was added with at is removed from an instance when its tick has run there, or was claimed by another ' +
  'instance. Add it again for another date.';

addInjected({ SingletonJobs });
