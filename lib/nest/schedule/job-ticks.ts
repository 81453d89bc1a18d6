import type { Job, Occasion } from './run-job.js';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import type { TickSchedule } from '../../core/jobs/watched-job.js';
import type { CronJobLike } from './job-schedules.js';
import {
  type CronTimeLike,
  LONGEST_CHANGE_HOURS,
  nominalTick,
  tickAfter,
  type ZonedTime,
  zoneOf,
} from './nominal-tick.js';
import { checkSpread, JOB_OPTIONS, resolveJobOptions, type SingletonJobOptions } from './singleton-options.js';

/**
 * The tick of a schedule that fires now.
 *
 * @returns its nominal time, in milliseconds since the Unix epoch, and the schedule, unless that is a single date
 */
export function cronTickAt(cronTime: CronTimeLike, now: number) {
  return { at: nominalTick(cronTime, now), cronTime: cronTime.realDate ? undefined : cronTime };
}

/** What the fleet is asked for, for a tick of a cron job. */
export function jobTickOf({ at, cronTime }: ReturnType<typeof cronTickAt>, options: Job['options']): Occasion['tick'] {
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
export function cronTicksOf(cronTime: CronTimeLike): TickSchedule {
  let ticks = cronTicks.get(cronTime);
  if (ticks === undefined) cronTicks.set(cronTime, (ticks = new CronTicks(cronTime)));
  return ticks;
}

/** When the ticks of a job in the registry are due; `undefined` for none, one that is stopped, and one on a date. */
export function scheduleOf(job: CronJobLike | undefined): TickSchedule | undefined {
  if (!job || job.isActive === false || job.cronTime.realDate) return undefined;
  return cronTicksOf(job.cronTime);
}

/** Checks that a job on a single date does not run for missed ticks: the scheduler refuses a date that is over. */
export function checkMissedOfDate({ missed }: Job['options'], where: string): void {
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

export function resolveIntervalOptions(options: SingletonJobOptions, ms: number, where: string): Job['options'] {
  const resolved = resolveJobOptions(options, where, JOB_OPTIONS);
  checkSpread(resolved, 'intervalMs', ms);
  return resolved;
}

/** The tick of an interval whose timer fires. @param ms the interval */
export function intervalTick(ms: number, wallNow: number): Occasion['tick'] {
  const keepMs = Math.floor(ms - Math.min(TIMER_SLACK.ms, ms * TIMER_SLACK.share));
  return { tick: 'interval', keepMs, next: wallNow + ms };
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** After so many questions to `cron`, of less than a millisecond each, the event loop has a turn. */
const QUESTIONS_PER_TURN = 16;

/** The ticks of one cron expression in one zone, by the scheduler's own `CronTime`. */
class CronTicks implements TickSchedule {
  readonly text: string;
  readonly #cronTime: CronTimeLike;
  readonly #zone: string | undefined;
  /** The ticks of a usual minute and of a usual hour, in milliseconds from its start. They are the same in all. */
  #ofMinute: readonly number[] | undefined;
  #ofHour: readonly number[] | undefined;
  /** The last tick that was asked for, and the next one: a process comes to all of them in their order. */
  #last = { tick: NaN, next: NaN };

  /** @param cronTime a schedule that is no date */
  constructor(cronTime: CronTimeLike) {
    this.#cronTime = cronTime;
    this.#zone = zoneOf(cronTime);
    this.text = `${String(cronTime.source).trim().split(/\s+/).join(' ')} ${this.#zone ?? ''}`;
  }

  after(time: number): number | undefined {
    return tickAfter(this.#cronTime, time)?.toMillis();
  }

  around(tick: number): ReturnType<TickSchedule['around']> {
    const before = this.#last.next === tick ? this.#last.tick : this.#before(tick);
    const after = this.after(tick);
    this.#last = { tick, next: after ?? NaN };
    return { before, after };
  }

  #before(tick: number): number | undefined {
    try {
      const found = nominalTick(this.#cronTime, tick - SECOND_MS);
      // Where there is none, that is the current second.
      return found < tick && this.after(found - 1) === found ? found : undefined;
    } catch {
      return undefined;
    }
  }

  /**
   * All ticks of an hour follow from the first one, so an hour with 3,600 ticks costs one question. Around a change of
   * the clocks, each tick is asked for.
   */
  async between(after: number, until: number, most: number): ReturnType<TickSchedule['between']> {
    let newest: number[] = [];
    let count = 0;
    let last = after;
    let oldest: number | undefined;
    for (let questions = 1; ; questions++) {
      if (questions % QUESTIONS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      const first = tickAfter(this.#cronTime, last);
      if (first === undefined || first.toMillis() > until) break;
      const ticks = this.#block(first, last, until);
      oldest ??= ticks[0];
      newest.push(...ticks);
      count += ticks.length;
      last = ticks.at(-1)!;
      if (newest.length > most) newest = newest.slice(-most);
    }
    return oldest === undefined ? { count, ticks: newest } : { count, first: oldest, ticks: newest };
  }

  /** The ticks of the hour that begins with this tick, or of its minute, or only this one. */
  #block(first: ZonedTime, after: number, until: number): readonly number[] {
    const at = first.toMillis();
    if (!isUsual(first)) return [at];
    const minuteStart = at - first.second * SECOND_MS;
    const hourStart = minuteStart - first.minute * MINUTE_MS;
    const isInside = (start: number, lengthMs: number): boolean =>
      after < start && start + lengthMs - SECOND_MS <= until;
    if (isInside(hourStart, HOUR_MS)) {
      this.#ofHour ??= this.#hour(first, hourStart);
      return this.#ofHour.map((offset) => hourStart + offset);
    }
    return isInside(minuteStart, MINUTE_MS) ? this.#minute(at, minuteStart) : [at];
  }

  #hour(first: ZonedTime, start: number): readonly number[] {
    const ticks: number[] = [];
    for (let next: ZonedTime | undefined = first; next; next = tickAfter(this.#cronTime, ticks.at(-1)!)) {
      const at = next.toMillis();
      if (at >= start + HOUR_MS) break;
      ticks.push(...this.#minute(at, at - next.second * SECOND_MS));
    }
    return ticks.map((tick) => tick - start);
  }

  #minute(first: number, start: number): readonly number[] {
    if (!this.#ofMinute) {
      const ticks: number[] = [];
      for (let tick: number | undefined = first; tick !== undefined && tick < start + MINUTE_MS;) {
        ticks.push(tick);
        tick = this.after(tick);
      }
      this.#ofMinute = ticks.map((tick) => tick - start);
    }
    return this.#ofMinute.map((offset) => start + offset);
  }
}

/** Whether the clocks are not changed in the hours before and after. */
function isUsual(time: ZonedTime): boolean {
  const { offset } = time;
  return (
    time.plus({ hours: -LONGEST_CHANGE_HOURS }).offset === offset &&
    time.plus({ hours: LONGEST_CHANGE_HOURS }).offset === offset
  );
}
