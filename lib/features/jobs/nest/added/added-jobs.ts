import type { DiscoveryService } from '@nestjs/core';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { InvalidLockOptionsError } from '../../../../kernel/api/errors.js';
import { inRootContext } from '../../../../kernel/util/async-contexts.js';
import { quote } from '../../../../kernel/util/quoted.js';
import {
  checkMissedOfDate,
  cronTickAt,
  cronTicksOf,
  intervalTick,
  resolveIntervalOptions,
  scheduleOf,
} from '../job-ticks.js';
import type { RedisLockService } from '../../../../nest/redis-lock.service.js';
import { fireJob, type Job, type JobMethod, type RunTrigger, runJob } from '../run-job.js';
import { resolveJobOptions } from '../singleton-options.js';
import { ADDED_CRON_OPTIONS, type AddedCronJob, type AddedJob, checkAddedJob, fleetOptionsOf } from './job-options.js';
import {
  cronJobClass,
  type CronJobLike,
  cronJobOf,
  describeTime,
  invalidSchedule,
  keepDate,
  type StatedSchedule,
  timeOf,
} from '../job-schedules.js';

type OnInterval = Extract<AddedJob, { intervalMs: unknown }>;
type OnDate = Extract<AddedJob, { at: unknown }>;

/** An added job, and its entry in the scheduler's registry. */
interface AddedEntry {
  readonly job: Job;
  readonly kind: 'cron' | 'interval';
  /** Added with `at`. */
  readonly isOnce: boolean;
  /** The `CronJob`, or the timer of the interval. */
  readonly scheduled: unknown;
}

/** A job that is being added. */
interface Adding extends Pick<Job, 'name' | 'options'> {
  readonly work: JobMethod;
  /** For messages. */
  readonly where: string;
}

/** The jobs that an application has added while it runs, under their names in the scheduler's registry. */
export class AddedJobs {
  readonly #entries = new Map<string, AddedEntry>();

  constructor(
    readonly registry: SchedulerRegistry,
    private readonly discovery: DiscoveryService,
    private readonly service: RedisLockService,
  ) {}

  /** The added job of this name. One that was deleted in the scheduler's registry is none any more. */
  find(name: string): Job | undefined {
    return this.#entry(name)?.job;
  }

  names(): string[] {
    return [...this.#entries.keys()].filter((name) => this.#entry(name));
  }

  /**
   * @throws InvalidLockOptionsError when an option is invalid or the name is taken; then nothing was changed
   */
  add(job: AddedJob, work: JobMethod): Job {
    const kind = checkAddedJob(job);
    const { name } = job;
    const where = `SingletonJobs.add({ name: ${quote(name)} })`;
    this.#checkName(name);
    const adding = { name, work, where };
    if (kind === 'intervalMs') {
      const { intervalMs } = job as OnInterval;
      const options = resolveIntervalOptions(fleetOptionsOf(job), intervalMs, where);
      return this.#addInterval({ ...adding, options }, intervalMs);
    }
    const options = resolveJobOptions(fleetOptionsOf(job), where, ADDED_CRON_OPTIONS);
    if (kind === 'at' || typeof job.cron !== 'string') checkMissedOfDate(options, where);
    return kind === 'at'
      ? this.#addDate({ ...adding, options }, job as OnDate)
      : this.#addCron({ ...adding, options }, job as AddedCronJob);
  }

  /** Checks that an added job can have another schedule: one with `at` is removed after its run. */
  checkReschedule(name: string, cron: unknown): void {
    if (typeof cron !== 'string' || !this.#entry(name)?.isOnce) return;
    throw new InvalidLockOptionsError(
      `The job ${quote(name)} was added with at, so it can only get another date. For an expression, remove it and ` +
        'add it again.',
      'cron',
    );
  }

  /** Ends the schedule of a job. A run continues to its end. */
  remove(name: string): void {
    const entry = this.#entry(name);
    if (!entry) return;
    if (entry.kind === 'cron') this.registry.deleteCronJob(name);
    else this.registry.deleteInterval(name);
    this.#entries.delete(name);
  }

  #entry(name: string): AddedEntry | undefined {
    const { registry } = this;
    const entry = this.#entries.get(name);
    if (!entry) return undefined;
    if (registry.doesExist(entry.kind, name)) {
      const standing: unknown = entry.kind === 'cron' ? registry.getCronJob(name) : registry.getInterval(name);
      if (standing === entry.scheduled) return entry;
    }
    this.#entries.delete(name);
    return undefined;
  }

  #checkName(name: string): void {
    const kind = (['cron', 'interval', 'timeout'] as const).find((each) => this.registry.doesExist(each, name));
    if (kind === undefined) return;
    const what = this.#entry(name) ? 'was added already' : `is in the SchedulerRegistry already, as ${kind}`;
    throw new InvalidLockOptionsError(
      `A job called ${quote(name)} ${what}. Remove it first, or give this one another name.`,
      'name',
    );
  }

  #addInterval({ name, options, work }: Adding, intervalMs: number): Job {
    const { service } = this;
    const tickAt = (wallNow: number): RunTrigger['tick'] => intervalTick(intervalMs, wallNow);
    const timerHere = () => (this.find(name) === job ? timer : undefined);
    const job = jobOf(service, { name, options, schedule: undefined, intervalMs, timer: timerHere, tickAt }, work);
    // Not in the context of the caller, which may be a request.
    const timer = inRootContext(() => setInterval(() => void fireJob(service, job), intervalMs));
    this.registry.addInterval(name, timer);
    this.#entries.set(name, { job, kind: 'interval', isOnce: false, scheduled: timer });
    return job;
  }

  #addCron(adding: Adding, { cron, timeZone, utcOffset }: AddedCronJob): Job {
    const source = { cronTime: cron, timeZone, utcOffset };
    return this.#schedule(adding, source, 'cron', (job) => fireJob(this.service, job)).job;
  }

  /** A job that runs once leaves no trace: many may be added, with new names. */
  #addDate(adding: Adding, { at }: OnDate): Job {
    const { name, where } = adding;
    const fire = async (job: Job): Promise<void> => {
      const { cronTime } = entry.scheduled;
      await fireJob(this.service, job);
      // It may have got another date since, and another job may have its name.
      if (this.#entry(name) === entry && entry.scheduled.cronTime === cronTime) this.remove(name);
    };
    const entry = this.#schedule(adding, { cronTime: dateOf(at, where) }, 'at', fire);
    return entry.job;
  }

  #schedule(
    { name, options, work, where }: Adding,
    source: StatedSchedule,
    option: 'cron' | 'at',
    fire: (job: Job) => Promise<void>,
  ): AddedEntry & { readonly scheduled: CronJobLike } {
    const { registry, discovery, service } = this;
    const place = { where, option };
    const cronJobs = cronJobClass(registry, discovery);
    const scheduled = cronJobOf(cronJobs, place, { ...source, name, onTick: () => fire(job) });
    const tickAt = (wallNow: number): RunTrigger['tick'] => cronTickAt(scheduled.cronTime, wallNow, options);
    const schedule = () => (this.find(name) === job ? scheduleOf(scheduled) : undefined);
    const isOrdered = typeof source.cronTime === 'string';
    const job = jobOf(service, { name, options, schedule: isOrdered ? schedule : undefined, tickAt }, work);
    registry.addCronJob(name, scheduled as never);
    // Before its timer starts: that asks for the next tick.
    if (isOrdered) cronTicksOf(scheduled.cronTime);
    try {
      inRootContext(() => scheduled.start());
    } catch (error) {
      registry.deleteCronJob(name);
      throw invalidSchedule(source, place, error);
    }
    keepDate(scheduled.cronTime);
    const entry = { job, kind: 'cron', isOnce: option === 'at', scheduled } as const;
    this.#entries.set(name, entry);
    return entry;
  }
}

function jobOf(service: RedisLockService, job: Omit<Job, 'run'>, work: JobMethod): Job {
  const run: Job['run'] = async (occasion) => ({
    result: await runJob(service, { ...job, work }, occasion),
    isTaken: true,
  });
  return { ...job, run };
}

function dateOf(at: OnDate['at'], where: string): Date {
  const ms = timeOf(at);
  if (ms === undefined) {
    throw new InvalidLockOptionsError(`at of ${where} must be a valid Date, not ${describeTime(at)}.`, 'at');
  }
  if (ms <= Date.now()) {
    throw new InvalidLockOptionsError(`at of ${where} is in the past: ${new Date(ms).toISOString()}.`, 'at');
  }
  return new Date(ms);
}
