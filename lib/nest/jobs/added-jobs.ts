import { Logger } from '@nestjs/common';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { isUnclaimed } from '../../core/singleton/tick-claims.js';
import { inRootContext } from '../../core/util/async-contexts.js';
import { quote } from '../../core/util/quoted.js';
import {
  checkMissedOfDate,
  cronTickAt,
  intervalTick,
  jobTickOf,
  resolveIntervalOptions,
} from '../schedule/job-ticks.js';
import type { CronTimeLike } from '../schedule/nominal-tick.js';
import type { JobMethod, JobTick, JobToRun } from '../schedule/run-job.js';
import { type ResolvedJobOptions, resolveJobOptions } from '../schedule/singleton-options.js';
import {
  ADDED_CRON_OPTIONS,
  type AddedCronJob,
  type AddedDateJob,
  type AddedIntervalJob,
  type AddedJob,
  checkAddedJob,
  fleetOptionsOf,
} from './added-job-options.js';
import type { CronJobClass, CronJobLike } from '../schedule/cron-job-class.js';
import { cronJobOf, describeTime, invalidSchedule, keepDate, type Place, timeOf } from '../schedule/job-schedules.js';

/** What the added jobs of an application need of it. */
export interface Surroundings {
  readonly registry: SchedulerRegistry;
  readonly cronJobs: CronJobClass | undefined;
  /** Runs a tick that fires now. */
  readonly run: (job: JobToRun, tick: JobTick) => Promise<unknown>;
  /** Milliseconds since the Unix epoch, by the clock of the lock service. */
  readonly wallNow: () => number;
}

/** A job that was added, and where it stands in the scheduler's registry. */
interface AddedEntry extends JobToRun {
  readonly kind: 'cron' | 'interval';
  /** Added with `at`. */
  readonly isOnce: boolean;
  /** The `CronJob`, or the timer of the interval. */
  readonly scheduled: unknown;
}

/** The jobs that an application has added while it runs. They stand in the scheduler's registry under their names. */
export class AddedJobs {
  /** As `@nestjs/schedule` logs the errors of decorated jobs. */
  readonly #logger = new Logger('Scheduler');
  readonly #entries = new Map<string, AddedEntry>();

  /** The added job of this name. One that was deleted in the scheduler's registry is none any more. */
  find(registry: SchedulerRegistry, name: string): JobToRun | undefined {
    return this.#entry(registry, name);
  }

  names(registry: SchedulerRegistry): string[] {
    return [...this.#entries.keys()].filter((name) => this.#entry(registry, name));
  }

  /**
   * @returns the job
   * @throws InvalidLockOptionsError when an option is invalid or the name is taken; then nothing was changed
   */
  add(job: AddedJob, work: JobMethod, surroundings: Surroundings): JobToRun {
    const kind = checkAddedJob(job);
    const where = `SingletonJobs.add({ name: ${quote(job.name)} })`;
    const { registry } = surroundings;
    this.#checkName(registry, job.name);
    if (kind === 'intervalMs') return this.#addInterval(job as AddedIntervalJob, work, where, surroundings);
    const options = resolveJobOptions(fleetOptionsOf(job), where, ADDED_CRON_OPTIONS);
    if (kind === 'at' || typeof job.cron !== 'string') checkMissedOfDate(options, where);
    return kind === 'at'
      ? this.#addDate(job as AddedDateJob, options, work, where, surroundings)
      : this.#addCron(job as AddedCronJob, options, work, where, surroundings);
  }

  /**
   * Checks that an added job can have another schedule: one with `at` is removed after its run.
   *
   * @throws InvalidLockOptionsError
   */
  checkReschedule(registry: SchedulerRegistry, name: string, cron: unknown): void {
    if (typeof cron !== 'string' || !this.#entry(registry, name)?.isOnce) return;
    throw new InvalidLockOptionsError(
      `The job ${quote(name)} was added with at, so it can only get another date. For an expression, remove it and ` +
        'add it again.',
      'cron',
    );
  }

  /** Ends the schedule of a job. A run goes on to its end. @returns whether there was such a job */
  remove(registry: SchedulerRegistry, name: string): boolean {
    const entry = this.#entry(registry, name);
    if (!entry) return false;
    if (entry.kind === 'cron') registry.deleteCronJob(name);
    else registry.deleteInterval(name);
    this.#entries.delete(name);
    return true;
  }

  #entry(registry: SchedulerRegistry, name: string): AddedEntry | undefined {
    const entry = this.#entries.get(name);
    if (!entry) return undefined;
    if (registry.doesExist(entry.kind, name)) {
      const standing: unknown = entry.kind === 'cron' ? registry.getCronJob(name) : registry.getInterval(name);
      if (standing === entry.scheduled) return entry;
    }
    this.#entries.delete(name);
    return undefined;
  }

  #checkName(registry: SchedulerRegistry, name: string): void {
    const kind = (['cron', 'interval', 'timeout'] as const).find((each) => registry.doesExist(each, name));
    if (kind === undefined) return;
    const what = this.#entry(registry, name) ? 'was added already' : `is in the SchedulerRegistry already, as ${kind}`;
    throw new InvalidLockOptionsError(
      `A job called ${quote(name)} ${what}. Remove it first, or give this one another name.`,
      'name',
    );
  }

  #addInterval(
    { intervalMs, ...job }: AddedIntervalJob,
    work: JobMethod,
    where: string,
    { registry, run, wallNow }: Surroundings,
  ): JobToRun {
    const options = resolveIntervalOptions(fleetOptionsOf({ intervalMs, ...job }), intervalMs, where);
    const { name } = job;
    const toRun = { name, options, work };
    const fire = (): void => void this.#logged(run(toRun, intervalTick(intervalMs, wallNow())));
    // Not in the context of the caller, which may be a request.
    const timer = inRootContext(() => setInterval(fire, intervalMs));
    registry.addInterval(name, timer);
    this.#entries.set(name, { ...toRun, kind: 'interval', isOnce: false, scheduled: timer });
    return toRun;
  }

  #addCron(
    { name, cron, timeZone, utcOffset }: AddedCronJob,
    options: ResolvedJobOptions,
    work: JobMethod,
    where: string,
    surroundings: Surroundings,
  ): JobToRun {
    const { run, wallNow } = surroundings;
    const toRun = { name, options, work };
    const fire = (time: CronTimeLike) => this.#logged(run(toRun, jobTickOf(cronTickAt(time, wallNow()), options)));
    this.#schedule(toRun, { cronTime: cron, timeZone, utcOffset }, fire, { where, option: 'cron' }, surroundings);
    return toRun;
  }

  /** A job that runs once leaves no trace: many may be added, with new names. */
  #addDate(
    { name, at }: AddedDateJob,
    options: ResolvedJobOptions,
    work: JobMethod,
    where: string,
    surroundings: Surroundings,
  ): JobToRun {
    const due = dateOf(at, where);
    const { registry, run, wallNow } = surroundings;
    const toRun = { name, options, work };
    const fire = async (time: CronTimeLike): Promise<void> => {
      await this.#logged(run(toRun, jobTickOf(cronTickAt(time, wallNow()), options)));
      // Meanwhile it may have got another date, and another job may have its name.
      if (this.#entry(registry, name) === added && added.scheduled.cronTime === time) this.remove(registry, name);
    };
    const added = this.#schedule(toRun, { cronTime: due }, fire, { where, option: 'at' }, surroundings);
    return toRun;
  }

  #schedule(
    toRun: JobToRun,
    schedule: { cronTime: unknown; timeZone?: string | undefined; utcOffset?: number | undefined },
    fire: (cronTime: CronTimeLike) => Promise<void>,
    place: Place,
    { registry, cronJobs }: Surroundings,
  ): AddedEntry & { readonly scheduled: CronJobLike } {
    const { name } = toRun;
    const job = cronJobOf(cronJobs, place, { ...schedule, name, onTick: () => fire(job.cronTime) });
    registry.addCronJob(name, job as never);
    try {
      inRootContext(() => job.start());
    } catch (error) {
      registry.deleteCronJob(name);
      throw invalidSchedule(schedule, place, error);
    }
    keepDate(job.cronTime);
    const entry = { ...toRun, kind: 'cron', isOnce: place.option === 'at', scheduled: job } as const;
    this.#entries.set(name, entry);
    return entry;
  }

  /** That a tick could not be claimed is in the log of the lock service, which counts such failures. */
  async #logged(tick: Promise<unknown>): Promise<void> {
    try {
      await tick;
    } catch (error) {
      if (!isUnclaimed(error)) this.#logger.error(error);
    }
  }
}

function dateOf(at: AddedDateJob['at'], where: string): Date {
  const ms = timeOf(at);
  if (ms === undefined) {
    throw new InvalidLockOptionsError(`at of ${where} must be a valid Date, not ${describeTime(at)}.`, 'at');
  }
  if (ms <= Date.now()) {
    throw new InvalidLockOptionsError(`at of ${where} is over: ${new Date(ms).toISOString()}.`, 'at');
  }
  return new Date(ms);
}
