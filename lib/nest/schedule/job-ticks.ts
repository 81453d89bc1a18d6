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
export function jobTickOf({ at, cronTime }: CronTick, { maxClockSkewMs, spreadMs }: ResolvedJobOptions): JobTick {
  const tick = { tick: new Date(at).toISOString(), keepMs: maxClockSkewMs, due: { at, maxClockSkewMs } };
  const next = spreadMs > 0 && cronTime ? new CronTicks(cronTime).after(at) : undefined;
  // The claim of the next tick makes this one late, so it must not come first.
  return next === undefined ? tick : { ...tick, spreadMs: Math.min(spreadMs, Math.floor((next - at) / 2)) };
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
export function intervalTick(ms: number): JobTick {
  return { tick: 'interval', keepMs: Math.floor(ms - Math.min(TIMER_SLACK.ms, ms * TIMER_SLACK.share)) };
}
