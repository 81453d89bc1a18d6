import { CronTime } from 'cron';
import { CronTicks } from '../../../../lib/features/jobs/nest/job-ticks.js';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const MOST = 1_000;

export const at = (iso: string): number => Date.parse(iso);
export const iso = (time: number | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString().replace(':00.000Z', 'Z');

/** A schedule, and how often `cron` was asked. */
export function scheduleOf(expression: string, timeZone: string | null = 'UTC', utcOffset?: number) {
  const cronTime =
    utcOffset === undefined ? new CronTime(expression, timeZone) : new CronTime(expression, null, utcOffset);
  const asked = { times: 0 };
  const ask = cronTime.getNextDateFrom.bind(cronTime);
  cronTime.getNextDateFrom = (...args) => (asked.times++, ask(...args));
  return { ticks: new CronTicks(cronTime), cronTime, asked };
}

/** The ticks for which a scheduler without downtime fires, in order. */
export function firings(cronTime: CronTime, zone: string, from: number, to: number): number[] {
  const times: number[] = [];
  for (let time = from; ;) {
    const next = cronTime.getNextDateFrom(new Date(time), zone).toMillis();
    if (next > to) return times;
    if (next <= time) throw new Error(`cron goes back from ${iso(time)} to ${iso(next)}`);
    times.push((time = next));
  }
}
