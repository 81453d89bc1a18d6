import type { Job, RunTrigger } from './run-job.js';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { cronTicksOf } from './cron-ticks.js';
import { timeOf, type TimerTime } from './job-schedules.js';
import { checkSpread, JOB_OPTIONS, resolveJobOptions, type SingletonJobOptions } from './singleton-options.js';

/** Returns the tick of a schedule that fires now, as the fleet is asked for it. */
export function cronTickAt(cronTime: TimerTime, now: number, options: Job['options']): RunTrigger['tick'] {
  if (cronTime.realDate) return dateTick(timeOf(cronTime.source)!, options);
  const schedule = cronTicksOf(cronTime);
  const { overlap: _, ...tick } = dateTick(schedule.firedAt(now), options);
  return { ...tick, schedule };
}

/** Returns the tick of a job on a single date. */
export function dateTick(at: number, { maxClockSkewMs, overlapOnDate }: Job['options']): RunTrigger['tick'] {
  const due = { at, maxClockSkewMs };
  // If the job got this date while it ran, that run may not have ended.
  return { tick: new Date(at).toISOString(), claimTtlMs: maxClockSkewMs, due, overlap: overlapOnDate };
}

/** Checks that a job on a single date does not run for missed ticks: the scheduler refuses a date that has passed. */
export function checkMissedOfDate({ missed }: Job['options'], where: string): void {
  if (missed.onMissed === 'skip') return;
  throw new InvalidLockOptionsError(
    `onMissed: 'runOnce' in the schedule of ${where} needs a cron expression. A job on a single date misses no tick: ` +
      'the scheduler refuses a date in the past. Leave onMissed out.',
    'onMissed',
  );
}

/** The name, minimum and maximum of an interval's time, for messages. */
export const INTERVAL_RANGE = ['intervalMs', 100, 2 ** 31 - 1] as const;
/** The tolerance for a timer that fires early, in milliseconds, and as a share of the interval if that is less. */
const TIMER_SLACK = { ms: 1_000, share: 0.1 };

export function resolveIntervalOptions(options: SingletonJobOptions, ms: number, where: string): Job['options'] {
  const resolved = resolveJobOptions(options, where, JOB_OPTIONS);
  checkSpread(resolved, 'intervalMs', ms);
  return resolved;
}

/** The tick of an interval whose timer fires. @param ms the interval */
export function intervalTick(ms: number, wallNow: number): RunTrigger['tick'] {
  const claimTtlMs = Math.floor(ms - Math.min(TIMER_SLACK.ms, ms * TIMER_SLACK.share));
  return { tick: 'interval', claimTtlMs, next: wallNow + ms };
}
