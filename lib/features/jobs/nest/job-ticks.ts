import type { TickSchedule } from '../core/watched-job.js';
import type { Job, RunTrigger } from './run-job.js';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { type CronJobLike, timeOf, type TimerTime } from './job-schedules.js';
import { type CronTimeLike, lastTickUntil, MAX_CHANGE_HOURS, tickAfter, type ZonedTime, zoneOf } from './next-tick.js';
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
    `onMissed: 'runOnce' in the schedule of ${where} needs a cron expression. A job on a single date cannot miss a ` +
      'tick: the scheduler rejects a date in the past. Leave onMissed out.',
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

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** A timer may fire this much early, by the wall clock. */
const EARLY_MS = 10;
/** After so many questions to `cron`, of less than a millisecond each, the event loop has a turn. */
const QUESTIONS_PER_TURN = 16;

/** Kept of a schedule: what this many kinds of questions have found, and this many ticks of each. */
const MAX_WINDOWS = 4;
const MAX_TICKS = 4;

/** Consecutive ticks: there is no tick between `from` and the first one, nor between two of them. */
interface Window {
  from: number;
  readonly ticks: number[];
}

const ticksByTime = new WeakMap<CronTimeLike, CronTicks>();
/** By text. An expression and zone are asked for once in this process, however many jobs have them. */
const ticksByText = new Map<string, WeakRef<CronTicks>>();
const unused = new FinalizationRegistry<string>((text) => {
  if (!ticksByText.get(text)?.deref()) ticksByText.delete(text);
});

/**
 * Returns the ticks of a schedule that is no date. All schedules with the same expression and zone share one object, and
 * so what `cron` has answered. Their timers ask it too.
 */
export function cronTicksOf(cronTime: TimerTime): CronTicks {
  const known = ticksByTime.get(cronTime);
  if (known) return known;
  const made = new CronTicks(cronTime);
  const ticks = ticksByText.get(made.text)?.deref() ?? made;
  ticksByTime.set(cronTime, ticks);
  if (ticks === made) {
    ticksByText.set(made.text, new WeakRef(made));
    unused.register(made, made.text);
  }
  armBy(ticks, cronTime);
  return ticks;
}

/** Lets the timer of a job wait until the next tick by the shared answers. It would ask `cron` for itself. */
function armBy(ticks: CronTicks, cronTime: TimerTime): void {
  const getTimeout = cronTime.getTimeout.bind(cronTime);
  cronTime.getTimeout = () => {
    const now = Date.now();
    const next = ticks.after(now);
    return next === undefined ? getTimeout() : next - now;
  };
}

/** Returns when the ticks of a job in the registry are due; `undefined` for none, a stopped one, and one on a date. */
export function scheduleOf(job: CronJobLike | undefined): TickSchedule | undefined {
  if (!job || job.isActive === false || job.cronTime.realDate) return undefined;
  return cronTicksOf(job.cronTime);
}

/** The ticks of one cron expression in one zone, by the scheduler's own `CronTime`. */
export class CronTicks implements TickSchedule {
  readonly text: string;
  readonly #cronTime: CronTimeLike;
  /** The ticks of a usual minute and of a usual hour, in milliseconds from its start. They are the same in all. */
  #ofMinute: readonly number[] | undefined;
  #ofHour: readonly number[] | undefined;
  /** The last one used comes first. */
  readonly #windows: Window[] = [];

  /** @param cronTime a schedule that is no date */
  constructor(cronTime: CronTimeLike) {
    this.#cronTime = cronTime;
    const zone = zoneOf(cronTime) ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
    this.text = `${String(cronTime.source).trim().split(/\s+/).join(' ')} ${zone}`;
  }

  after(time: number): number | undefined {
    // `cron` drops the milliseconds.
    const from = Math.floor(time / SECOND_MS) * SECOND_MS;
    const known = this.#windowAt(from);
    if (known) return known.ticks.find((tick) => tick > from);
    const next = tickAfter(this.#cronTime, from)?.toMillis();
    if (next !== undefined) this.#keep(from, next);
    return next;
  }

  around(tick: number): ReturnType<TickSchedule['around']> {
    return { before: this.#before(tick), after: this.after(tick) };
  }

  /**
   * Returns the tick for which a job that fires now was scheduled: its last one not after `now`. All instances compute
   * the same one, even if their clocks differ: on each of them, the clock that fires the timer is the clock behind
   * `now`.
   */
  firedAt(now: number): number {
    return this.#lastUntil(now + EARLY_MS) ?? Math.floor(now / SECOND_MS) * SECOND_MS;
  }

  #windowAt(time: number): Window | undefined {
    const index = this.#windows.findIndex(({ from, ticks }) => from <= time && time < ticks.at(-1)!);
    if (index > 0) this.#windows.unshift(...this.#windows.splice(index, 1));
    return index < 0 ? undefined : this.#windows[0];
  }

  #keep(from: number, next: number): void {
    const before = this.#windows.find(({ ticks }) => ticks.at(-1) === from);
    const same = this.#windows.find(({ ticks }) => ticks[0] === next);
    if (before) {
      before.ticks.push(next);
      if (before.ticks.length > MAX_TICKS) before.from = before.ticks.shift()!;
    } else if (same) {
      same.from = Math.min(same.from, from);
    } else {
      this.#windows.unshift({ from, ticks: [next] });
      this.#windows.splice(MAX_WINDOWS);
    }
  }

  #before(tick: number): number | undefined {
    const known = this.#windows.find(({ ticks }) => ticks.includes(tick))?.ticks;
    if (known && known[0] !== tick) return known[known.indexOf(tick) - 1];
    const found = this.#lastUntil(tick - SECOND_MS);
    if (found === undefined || this.after(found) !== tick) return undefined;
    const ticks = this.#windows.find((window) => window.ticks[0] === tick)?.ticks;
    if (ticks && ticks.length < MAX_TICKS) ticks.unshift(found);
    return found;
  }

  /** Returns the last tick not after `latest`. */
  #lastUntil(latest: number): number | undefined {
    const known = this.#windowAt(Math.floor(latest / SECOND_MS) * SECOND_MS)?.ticks.findLast((tick) => tick <= latest);
    if (known !== undefined) return known;
    return lastTickUntil(latest, (time) => this.after(time));
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

/** Returns true if there is no clock change in the hours before and after. */
function isUsual(time: ZonedTime): boolean {
  const { offset } = time;
  return (
    time.plus({ hours: -MAX_CHANGE_HOURS }).offset === offset &&
    time.plus({ hours: MAX_CHANGE_HOURS }).offset === offset
  );
}
