/**
 * The part of `CronTime` that is needed here. It is a class of the package `cron`, which `@nestjs/schedule` depends on.
 */
export interface CronTimeLike {
  readonly realDate: boolean;
  readonly source: unknown;
  readonly timeZone?: string | undefined;
  readonly utcOffset?: number | undefined;
  getNextDateFrom(start: Date, timeZone?: string): ZonedTime;
}

/** A time as `cron` returns it: a DateTime of luxon, in the zone of the job. */
export interface ZonedTime {
  toMillis(): number;
  readonly minute: number;
  readonly second: number;
  /** Minutes ahead of UTC. */
  readonly offset: number;
  plus(duration: { hours?: number; milliseconds?: number }): ZonedTime;
}

/** The ticks of a cron expression are whole seconds. */
const RESOLUTION_MS = 1_000;
/** The first and the longest look back for the last tick if there is no next one. */
const LOOK_BACK_MS = { first: 2_000, longest: 10 * 366 * 24 * 60 * 60 * 1_000 };
/** Up to this many ticks are passed one by one. With more, bisection finds the last one. */
const MAX_HOPS = 4;
/** If `cron` goes back in time, the next tick is searched in such steps, up to this long. */
const DETOUR = { stepMs: 5 * 60 * 1000, longestMs: 4 * 60 * 60 * 1000 };
/** No zone sets its clocks by more than this. */
export const MAX_CHANGE_HOURS = 2;
const HOUR_MS = 60 * 60 * 1000;

/**
 * The first tick of a schedule after a time, as an instance fires that was up all the time; none if there is none within
 * the years that `cron` looks ahead.
 */
export function tickAfter(cronTime: CronTimeLike, time: number): ZonedTime | undefined {
  for (let from = time; ;) {
    const next = ask(cronTime, from);
    const first = next && firstAfterChange(cronTime, next);
    if (first === undefined || next!.toMillis() >= first) return next;
    if (first === Infinity) return undefined;
    from = first - RESOLUTION_MS;
  }
}

/** The same, as `cron` answers an instance that starts at that time. */
function ask(cronTime: CronTimeLike, time: number): ZonedTime | undefined {
  // On the night when the clocks go back, `cron` returns past times, in zones of the south.
  for (let from = time; from <= time + DETOUR.longestMs; from += DETOUR.stepMs) {
    let next: ZonedTime;
    try {
      next = cronTime.getNextDateFrom(new Date(from), zoneOf(cronTime));
    } catch {
      // It throws if it has found none.
      return undefined;
    }
    if (next.toMillis() > time) return next;
  }
  return undefined;
}

/** Caches the last clock change that a schedule was asked for. */
const changes = new WeakMap<CronTimeLike, { readonly change: number; readonly first: number }>();

/**
 * When the clocks go back, some times come twice. `cron` does not fire a job that has run at 02:30 again at the second
 * 02:30. On an instance that starts in between, it does: that is no tick.
 *
 * @returns the first tick that is fired after the change, if the clocks have gone back in the hours before this tick
 */
function firstAfterChange(cronTime: CronTimeLike, tick: ZonedTime): number | undefined {
  const back = tick.plus({ hours: -MAX_CHANGE_HOURS }).offset - tick.offset;
  // `cron` knows changes of up to an hour, which is all zones but one.
  if (back <= 0 || back > 60) return undefined;
  const change = changeBefore(tick);
  let known = changes.get(cronTime);
  if (known?.change !== change) {
    const last = lastTickUntil(change - RESOLUTION_MS, (time) => ask(cronTime, time)?.toMillis());
    const first = last === undefined ? change : (ask(cronTime, last)?.toMillis() ?? Infinity);
    changes.set(cronTime, (known = { change, first }));
  }
  return known.first;
}

/** When the clocks went back, in the hours before this time. */
function changeBefore(time: ZonedTime): number {
  let before = time.toMillis() - MAX_CHANGE_HOURS * HOUR_MS;
  let after = time.toMillis();
  while (after - before > RESOLUTION_MS) {
    const middle = Math.floor((before + after) / 2 / RESOLUTION_MS) * RESOLUTION_MS;
    if (time.plus({ milliseconds: middle - time.toMillis() }).offset === time.offset) after = middle;
    else before = middle;
  }
  return after;
}

/**
 * Returns the last tick that is not after `latest`. A cron expression only yields its next tick, so this asks at times
 * in the past.
 *
 * @param after returns the first tick after a time
 */
export function lastTickUntil(latest: number, after: (time: number) => number | undefined): number | undefined {
  const next = after(latest);
  const afterNext = next === undefined ? undefined : after(next);
  // As far back as the next two are apart, which is right for most schedules.
  let lookBackMs = afterNext === undefined ? LOOK_BACK_MS.first : afterNext - next!;
  for (; lookBackMs < LOOK_BACK_MS.longest; lookBackMs *= 8) {
    const tick = after(latest - lookBackMs);
    if (tick !== undefined && tick <= latest) return lastFrom(tick, latest, after);
  }
  return undefined;
}

/** Returns the last of the ticks from `first` to `latest`. */
function lastFrom(first: number, latest: number, after: (time: number) => number | undefined): number {
  let tick = first;
  for (let hops = 0; hops < MAX_HOPS; hops++) {
    const next = after(tick);
    if (next === undefined || next > latest) return tick;
    tick = next;
  }
  // There may be thousands.
  let noneAfter = latest;
  while (noneAfter - tick >= RESOLUTION_MS) {
    const middle = Math.floor((tick + noneAfter) / 2);
    const later = after(middle);
    if (later === undefined || later > latest) noneAfter = middle;
    else tick = later;
  }
  return tick;
}

/** Returns the zone of a schedule, as `CronTime` names it. */
export function zoneOf({ timeZone, utcOffset }: CronTimeLike): string | undefined {
  return timeZone ?? offsetZone(utcOffset);
}

/** Formats an offset in minutes in the same way as CronTime. */
function offsetZone(utcOffset: number | undefined): string | undefined {
  if (utcOffset === undefined) return undefined;
  const minutes = Math.abs(utcOffset);
  const two = (value: number): string => String(Math.trunc(value)).padStart(2, '0');
  return `UTC${utcOffset < 0 ? '-' : '+'}${two(minutes / 60)}:${two(minutes % 60)}`;
}
