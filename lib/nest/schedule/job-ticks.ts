import { InvalidLockOptionsError } from '../../core/api/errors.js';
import type { TickSchedule } from '../../core/jobs/tick-schedule.js';
import { CronTicks } from './due-ticks.js';
import { type CronTimeLike, nominalTick } from './nominal-tick.js';
import type { JobTick } from './run-job.js';
import {
  checkSpread,
  JOB_OPTIONS,
  type ResolvedJobOptions,
  resolveJobOptions,
  type SingletonJobOptions,
} from './singleton-options.js';

/** A tick of a cron job that fires now. */
export interface CronTick {
  /** Its nominal time, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** The schedule that it belongs to, unless that is a single date. */
  readonly cronTime: CronTimeLike | undefined;
}

/** The tick of a schedule that fires now. */
export function cronTickAt(cronTime: CronTimeLike, now: number): CronTick {
  return { at: nominalTick(cronTime, now), cronTime: cronTime.realDate ? undefined : cronTime };
}

/** What the fleet is asked for, for a tick of a cron job. */
export function jobTickOf({ at, cronTime }: CronTick, options: ResolvedJobOptions): JobTick {
  const { maxClockSkewMs, spreadMs, overlapOnDate } = options;
  const due = { tick: new Date(at).toISOString(), keepMs: maxClockSkewMs, due: { at, maxClockSkewMs } };
  // Where the job got this date while it ran, that run may not have ended.
  if (!cronTime) return { ...due, overlap: overlapOnDate };
  const schedule = cronTicksOf(cronTime);
  const { before: previous, after: next } = schedule.around(at);
  const tick = { ...due, schedule, previous, next };
  // The claim of the next tick makes this one late, so it must not come first.
  if (spreadMs === 0 || next === undefined) return tick;
  return { ...tick, spreadMs: Math.min(spreadMs, Math.floor((next - at) / 2)) };
}

const cronTicks = new WeakMap<CronTimeLike, CronTicks>();

/** The ticks of a schedule that is no date. What was found out of them is kept. */
export function cronTicksOf(cronTime: CronTimeLike): CronTicks {
  let ticks = cronTicks.get(cronTime);
  if (ticks === undefined) cronTicks.set(cronTime, (ticks = new CronTicks(cronTime)));
  return ticks;
}

/** The part of `CronJob` that says whether it is started. */
export interface ScheduledJob {
  readonly cronTime: CronTimeLike;
  readonly isActive?: boolean;
}

/** When the ticks of a job in the registry are due; `undefined` for none, one that is stopped, and one on a date. */
export function scheduleOf(job: ScheduledJob | undefined): TickSchedule | undefined {
  if (!job || job.isActive === false || job.cronTime.realDate) return undefined;
  return cronTicksOf(job.cronTime);
}

/**
 * Checks that a job on a single date does not run for missed ticks: the scheduler refuses a date that is over.
 *
 * @throws InvalidLockOptionsError
 */
export function checkMissedOfDate({ missed }: ResolvedJobOptions, where: string): void {
  if (missed.onMissed === 'skip') return;
  throw new InvalidLockOptionsError(
    `onMissed: 'runOnce' in the schedule of ${where} needs a cron expression. A job on a single date misses no tick: ` +
      'the scheduler refuses a date that is over. Leave onMissed out.',
    'onMissed',
  );
}

/** What the time of an interval is called in a message, the shortest and the longest one. */
export const INTERVAL_RANGE = ['intervalMs', 100, 2 ** 31 - 1] as const;
/** How early a timer may fire after the last one, in milliseconds, and as a share of the interval if that is less. */
const TIMER_SLACK = { ms: 1_000, share: 0.1 };

/** @throws InvalidLockOptionsError */
export function resolveIntervalOptions(options: SingletonJobOptions, ms: number, where: string): ResolvedJobOptions {
  const resolved = resolveJobOptions(options, where, JOB_OPTIONS);
  checkSpread(resolved, 'intervalMs', ms);
  return resolved;
}

/** The tick of an interval whose timer fires. @param ms the interval */
export function intervalTick(ms: number, wallNow: number): JobTick {
  const keepMs = Math.floor(ms - Math.min(TIMER_SLACK.ms, ms * TIMER_SLACK.share));
  return { tick: 'interval', keepMs, next: wallNow + ms };
}
