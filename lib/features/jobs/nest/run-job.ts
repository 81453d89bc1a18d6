import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { InvalidLockOptionsError, LockUnavailableError } from '../../../kernel/api/errors.js';
import type { JobRecords } from '../core/job-records.js';
import { isUnclaimed } from '../core/tick-claims.js';
import type { TickSchedule } from '../core/watched-job.js';
import type { JobTicks, SingletonRun, SingletonRunOptions, SingletonWork } from '../core/singleton-run-options.js';
import type { ClaimMetadata } from '../core/job-claims.js';
import type { RedisLockService } from '../../../nest/redis-lock.service.js';
import { sharedByCopies } from '../../../kernel/util/objects.js';
import { clockOf, partsOf } from '../../../nest/service-parts.js';
import type { resolveJobOptions } from './singleton-options.js';

/** As `@nestjs/schedule` logs the errors of its jobs. */
const SCHEDULER_LOG = new Logger('Scheduler');

/** The method of a job. It is called with its run. */
export type JobMethod = (run: SingletonRun) => unknown;

/** A job of this process: a decorated method, or one that was added while the application runs. */
export interface Job {
  /** The name of the job in the fleet. */
  readonly name: string;
  /** The class and the method of a decorated one, for messages. */
  readonly where?: string;
  readonly options: ReturnType<typeof resolveJobOptions>;
  /** Returns its current schedule. Not set if ticks have no order. */
  readonly schedule: (() => TickSchedule | undefined) | undefined;
  /** The time between two ticks of an interval. */
  readonly intervalMs?: number | undefined;
  /** The timer of an interval; `undefined` while it is not scheduled. */
  readonly timer?: (() => Pick<NodeJS.Timeout, 'refresh'> | undefined) | undefined;
  /** The tick that fires at a time. @param wallNow milliseconds since the Unix epoch */
  tickAt(wallNow: number): JobTick;
  /**
   * Runs it, with all decorators that its method has, if this instance gets the tick.
   *
   * @returns its result, and whether the decorator of the job was reached
   */
  run(occasion: RunTrigger): Promise<{ readonly result: unknown; readonly isTaken: boolean }>;
}

/** Which tick is asked for. `jitterMs`: the longest delay of this one. */
interface JobTick extends Pick<SingletonRunOptions, 'tick' | 'claimTtlMs' | 'due' | 'jitterMs'> {
  /** Overrides the job's own. */
  readonly overlap?: SingletonRunOptions['overlap'];
  /** The schedule that the tick belongs to. Not set if ticks have no order. */
  readonly schedule?: TickSchedule | undefined;
  /** The time of the next tick, if the schedule does not provide it. */
  readonly next?: number | undefined;
}

/** Why a job runs now: a timer fires, an operator asks for it, or ticks were missed. */
export interface RunTrigger {
  readonly kind: ClaimMetadata['kind'];
  readonly tick: JobTick;
  /** Called when this instance has the tick, before the work. */
  readonly begins?: (() => void) | undefined;
}

/** Runs a job if this instance gets the tick. Every run of every job comes this way. */
export async function runJob(
  service: RedisLockService,
  { name, options, work, ...job }: Pick<Job, 'name' | 'options' | 'schedule' | 'intervalMs'> & { work: JobMethod },
  { kind, tick, begins }: RunTrigger,
): Promise<unknown> {
  const isTick = kind === 'tick';
  if (isTick) await jobTurn();
  const { overlap, jitterMs, history, lock, warnAfterMs } = options;
  const { schedule, next: nextAt, ...target } = tick;
  const at = target.due?.at;
  const { before: previous, after: next } =
    isTick && schedule && at !== undefined ? schedule.around(at) : { before: undefined, after: nextAt };
  // No other instance knows the tick of a manual run, so none could run it again after a crash.
  const onCrash = kind === 'manual' ? 'skip' : options.onCrash;
  const run = {
    job: name,
    overlap,
    onCrash,
    ...(onCrash === 'retry' && { maxReruns: options.maxReruns }),
    ...(isTick && { jitterMs: spreadBefore(next, at, jitterMs) }),
    ...(kind === 'manual' && { manual: true }),
    ...history,
    lock,
    ...target,
  };
  const doWork: SingletonWork<unknown> = (_lease, singletonRun) => {
    begins?.();
    return work(singletonRun);
  };
  const { singletonRuns: runs, jobs: watch } = partsOf(service) ?? {};
  if (!runs) return service.runSingleton(run, doWork);
  const ticks = job.intervalMs === undefined ? job.schedule?.() : everyMs(job.intervalMs);
  const watched = { ticks, warnAfterMs };
  // Without a store that remembers jobs, no tick is known to be missed.
  if (!watch || kind === 'manual') return runs.run(run, doWork, watched);
  const plan = { kind, schedule: schedule?.text, previous, next, ...watched };
  if (!isTick) return runs.run(run, doWork, plan);
  const onUnknown = (): void => watch.missed.unknown(name);
  if (!schedule || at === undefined) {
    const isDate = at !== undefined && watch.missed.hasDate(name, at);
    return runs.run(run, doWork, { next, isDate, ...watched, onUnknown });
  }
  return runs.run(run, doWork, {
    ...plan,
    onGap: (after) => watch.missed.close(name, after, at, schedule),
    onAccounted: () => watch.missed.accounted(name, at, next),
    onOther: (other) => watch.missed.differs(name, schedule, other),
    onUnknown,
  });
}

/** The ticks of an interval, counted from any time. */
function everyMs(ms: number): JobTicks {
  return {
    after: (time) => time + ms,
    between: async (after, until) => ({ count: Math.max(0, Math.floor((until - after) / ms)) }),
  };
}

/** The claim of the next tick makes this one late, so it must not come first. */
function spreadBefore(next: number | undefined, at: number | undefined, jitterMs: number): number {
  return next === undefined || at === undefined ? jitterMs : Math.min(jitterMs, Math.floor((next - at) / 2));
}

/** The TTL of the claim of a run with a text of its own: covers a lost answer, and the same command again. */
const OWN_KEEP_MS = 60_000;

/** Returns the trigger of a manual run. The text of its tick has the time and the requester. */
export function manualTrigger(now: number, by: string | undefined, id = randomUUID().slice(0, 8)): RunTrigger {
  const text = `manual:${new Date(now).toISOString()}:${id}`;
  return { kind: 'manual', tick: { tick: by === undefined ? text : `${text} by ${by}`, claimTtlMs: OWN_KEEP_MS } };
}

/**
 * The one run for all ticks that were missed. The record of the job in the store grants it once, however long a claim is
 * remembered.
 */
function catchUpTrigger(service: RedisLockService, job: Pick<Job, 'schedule'>, tick: string): RunTrigger {
  const schedule = job.schedule?.();
  const next = schedule?.after(clockOf(service).wallNow());
  return { kind: 'catchUp', tick: { tick, claimTtlMs: OWN_KEEP_MS, schedule, next } };
}

/** A call of a decorated method for a reason that the method cannot know, on its way through the decorators above. */
interface PendingTrigger {
  readonly job: string;
  readonly occasion: RunTrigger;
  isTaken: boolean;
}

/** One copy of this package may have decorated the method that another one calls. */
const errands = sharedByCopies('manual-runs:2', () => new AsyncLocalStorage<PendingTrigger>());

/**
 * Calls a decorated method for an occasion. It is called by its name, so other decorators above do their part.
 *
 * @returns its result, and whether the decorator of the job was reached
 */
export async function callFor(job: string, occasion: RunTrigger, call: () => unknown): ReturnType<Job['run']> {
  const errand: PendingTrigger = { job, occasion, isTaken: false };
  const result = await errands.run(errand, call);
  return { result, isTaken: errand.isTaken };
}

/**
 * Returns the trigger of this call of the job's method; `undefined` if its timer calls it, or the user. Calls inside of
 * it have none.
 */
export function takeTrigger(job: string): RunTrigger | undefined {
  const errand = errands.getStore();
  if (errand?.job !== job || errand.isTaken) return undefined;
  errand.isTaken = true;
  return errand.occasion;
}

/**
 * Returns the job records of a lock service.
 *
 * @throws LockUnavailableError for the mock of a test
 */
export function jobRecordsOf(service: object): JobRecords {
  const watch = partsOf(service)?.jobs;
  if (watch) return watch.records;
  throw new LockUnavailableError('', 'find jobs', 'failed', new Error('this lock service is a mock'));
}

/** Checks that the store remembers what a run for missed ticks needs. */
export function checkMissedIsKept(service: object, onMissed: unknown, what: string): void {
  const refusal = partsOf(service)?.jobs?.records.refusal;
  if (onMissed !== 'runOnce' || refusal === undefined) return;
  throw new InvalidLockOptionsError(`${what} has onMissed: 'runOnce', but ${refusal}. Or remove onMissed.`, 'onMissed');
}

/** Runs a due job. An error is logged like `@nestjs/schedule` logs errors of its jobs. */
export async function fireJob(service: RedisLockService, job: Job): Promise<void> {
  try {
    await job.run({ kind: 'tick', tick: job.tickAt(clockOf(service).wallNow()) });
  } catch (error) {
    // The log of the lock service counts ticks that could not be claimed.
    if (!isUnclaimed(error)) SCHEDULER_LOG.error(error);
  }
}

/** Fires an interval before its timer does, which restarts. @returns false if there is no timer: it was deleted */
function fireFirst(service: RedisLockService, job: Job): boolean {
  const timer = job.timer?.();
  timer?.refresh();
  if (timer) void fireJob(service, job);
  return timer !== undefined;
}

/** The date of a job that is due once. */
function dateOf(service: RedisLockService, job: Job): number | undefined {
  const { due, schedule } = job.tickAt(clockOf(service).wallNow());
  return schedule ? undefined : due?.at;
}

/** Watches a job from now on, and runs it for ticks that were missed. */
export function watchJob(service: RedisLockService, job: Job): void {
  const { name, options, schedule, intervalMs } = job;
  const { graceMs, onMissed, catchUpWindowMs } = options.missed;
  partsOf(service)?.jobs?.missed.add({
    job: name,
    historySize: options.history.historySize ?? 0,
    // An instance may still be waiting for its random part of jitterMs.
    graceMs: schedule ? graceMs + options.jitterMs : Infinity,
    onMissed,
    catchUpWindowMs,
    date:
      schedule || intervalMs !== undefined
        ? undefined
        : { isOfClass: job.where !== undefined, at: () => dateOf(service, job) },
    schedule: schedule ?? (() => undefined),
    interval: intervalMs === undefined ? undefined : { ms: intervalMs, fire: () => fireFirst(service, job) },
    runOwed: ({ tick }) =>
      job.run(catchUpTrigger(service, job, tick)).catch((error: unknown) => SCHEDULER_LOG.error(error)),
  });
}

/** This many jobs begin in one turn of the event loop. */
const JOBS_PER_TURN = 8;

/** Not the fake one of a test, which may never call back. */
const callInNextTurn = setImmediate;
const waiting: (() => void)[] = [];
let begun = 0;

/**
 * Resolves when the next job may begin. The timers of all jobs that are due at one second fire in one turn of the event
 * loop. Their claims are spread over the turns that follow, so that other work is done in between.
 */
async function jobTurn(): Promise<void> {
  if (begun === 0) callInNextTurn(beginSome);
  if (++begun > JOBS_PER_TURN) await new Promise<void>((resolve) => waiting.push(resolve));
}

function beginSome(): void {
  const some = waiting.splice(0, JOBS_PER_TURN);
  begun = some.length;
  if (begun > 0) callInNextTurn(beginSome);
  for (const begin of some) begin();
}
