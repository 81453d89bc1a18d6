/**
 * The part of `CronTime` that is needed here. It is a class of the package `cron`, which `@nestjs/schedule` depends on.
 */
export interface CronTimeLike {
  readonly realDate: boolean;
  readonly source: unknown;
  readonly timeZone?: string | undefined;
  readonly utcOffset?: number | undefined;
  getNextDateFrom(start: Date, timeZone?: string): { toMillis(): number };
}

/** A timer may fire this much early, by the wall clock. */
const EARLY_MS = 10;
const FIRST_LOOK_BACK_MS = 2_000;
const LONGEST_LOOK_BACK_MS = 10 * 366 * 24 * 60 * 60 * 1000;
/** The ticks of a cron expression are whole seconds. */
const RESOLUTION_MS = 1_000;

/**
 * Returns the time for which a job that fires now was scheduled: its last time not after `now`. All instances compute
 * the same time, even if their clocks differ: on each of them, the clock that fires the timer is the clock that says
 * `now`.
 *
 * @returns milliseconds since the Unix epoch
 */
export function nominalTick(cronTime: CronTimeLike, now: number): number {
  if (cronTime.realDate) return (cronTime.source as { toMillis(): number }).toMillis();
  const latest = now + EARLY_MS;
  const zone = zoneOf(cronTime);
  /** The first tick after a time, if it is not after `latest`. */
  const tickAfter = (time: number): number | undefined => {
    const tick = cronTime.getNextDateFrom(new Date(time), zone).toMillis();
    // When a zone repeats half an hour (Lord Howe), `cron` returns a time in the past.
    return tick > time && tick <= latest ? tick : undefined;
  };
  // A cron expression only says its next time. So start a little in the past, and further back until there is a tick.
  for (let lookBackMs = FIRST_LOOK_BACK_MS; lookBackMs < LONGEST_LOOK_BACK_MS; lookBackMs *= 8) {
    const tick = tickAfter(latest - lookBackMs);
    if (tick !== undefined) return lastTick(tick, latest, tickAfter);
  }
  return Math.floor(now / 1000) * 1000;
}

/** Returns the last of the ticks from `first` to `latest`. A binary search, because there may be thousands. */
function lastTick(first: number, latest: number, tickAfter: (time: number) => number | undefined): number {
  let tick = first;
  let noneAfter = latest;
  while (noneAfter - tick >= RESOLUTION_MS) {
    const middle = Math.floor((tick + noneAfter) / 2);
    const later = tickAfter(middle);
    if (later === undefined) noneAfter = middle;
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
