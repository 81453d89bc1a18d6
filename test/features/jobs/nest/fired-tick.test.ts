import { CronTime } from 'cron';
import fc from 'fast-check';
import { cronTickAt, CronTicks } from '../../../../lib/features/jobs/nest/job-ticks.js';
import { resolveJobOptions, TICK_OPTIONS } from '../../../../lib/features/jobs/nest/singleton-options.js';
import { runs } from '../../../support/simulation/runs.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function at(iso: string): number {
  return Date.parse(iso);
}

/** The tick that a job of this schedule fires for, at this time. */
function tickAt(expression: string, now: number, timeZone: string | null = 'UTC', utcOffset?: number): string {
  const cronTime =
    utcOffset === undefined ? new CronTime(expression, timeZone) : new CronTime(expression, null, utcOffset);
  return new Date(new CronTicks(cronTime).firedAt(now)).toISOString().replace('.000Z', 'Z');
}

describe('the tick a job fires for', () => {
  it.each([
    ['every second', '* * * * * *', '2026-05-05T10:00:07Z'],
    ['every five seconds', '*/5 * * * * *', '2026-05-05T10:00:05Z'],
    ['every minute', '0 * * * * *', '2026-05-05T10:01:00Z'],
    ['every minute, five fields', '* * * * *', '2026-05-05T10:01:00Z'],
    ['daily', '0 30 2 * * *', '2026-05-05T02:30:00Z'],
    ['on weekdays', '0 0 9 * * 1-5', '2026-05-05T09:00:00Z'],
    ['monthly', '0 0 0 1 * *', '2026-06-01T00:00:00Z'],
    ['yearly', '@yearly', '2027-01-01T00:00:00Z'],
    ['on February 29', '0 0 12 29 2 *', '2028-02-29T12:00:00Z'],
    ['in bursts', '* * 3 * * *', '2026-05-05T03:00:00Z'],
  ])('%s: is the time it was scheduled for', (_, expression, due) => {
    for (const lateMs of [-10, -1, 0, 1, 17, 400, 980]) {
      expect([lateMs, tickAt(expression, at(due) + lateMs)]).toEqual([lateMs, due]);
    }
  });

  it.each([
    ['0 * * * * *', '2026-05-05T10:01:00Z', 59 * SECOND],
    ['0 */10 * * * *', '2026-05-05T10:10:00Z', 9 * MINUTE],
    ['0 30 2 * * *', '2026-05-05T02:30:00Z', 7 * HOUR],
    ['0 0 0 1 1 *', '2026-01-01T00:00:00Z', 364 * DAY],
    ['0 0 12 29 2 *', '2028-02-29T12:00:00Z', 4 * 365 * DAY],
  ])('%s: is still %s when it fires %d ms late', (expression, due, lateMs) => {
    expect(tickAt(expression, at(due) + lateMs)).toBe(due);
  });

  it('is the last one if it fires so late that others have passed', () => {
    expect(tickAt('* * * * * *', at('2026-05-05T10:00:07.300Z'))).toBe('2026-05-05T10:00:07Z');
    expect(tickAt('0 * * * * *', at('2026-05-05T10:07:59Z'))).toBe('2026-05-05T10:07:00Z');
  });
});

describe('the tick a job fires for, in its time zone', () => {
  it.each([
    ['Europe/Vienna', '2026-07-01T00:30:00Z'],
    ['America/New_York', '2026-07-01T06:30:00Z'],
    ['Asia/Kolkata', '2026-06-30T21:00:00Z'],
  ])('%s', (timeZone, due) => {
    expect(tickAt('0 30 2 * * *', at(due) + 5, timeZone)).toBe(due);
  });

  it.each([
    [120, '2026-07-01T00:30:00Z'],
    [-300, '2026-07-01T07:30:00Z'],
    [330, '2026-06-30T21:00:00Z'],
    [-30, '2026-07-01T03:00:00Z'],
    [0, '2026-07-01T02:30:00Z'],
  ])('utcOffset %d', (utcOffset, due) => {
    expect(tickAt('0 30 2 * * *', at(due) + 5, null, utcOffset)).toBe(due);
  });
});

describe('the tick a job fires for, when the clocks change', () => {
  /** When `cron` fires between two times, by its own account. */
  function firings(cronTime: CronTime, timeZone: string, from: string, to: string): number[] {
    const times: number[] = [];
    for (let time = at(from); time <= at(to);) {
      const next = cronTime.getNextDateFrom(new Date(time), timeZone).toMillis();
      if (next <= time) throw new Error(`cron goes back from ${time} to ${next}`);
      times.push((time = next));
    }
    return times;
  }

  it.each([
    ['Europe/Berlin', '2026-03-29T00:10:00Z', '2026-03-29T03:00:00Z'],
    ['Europe/Berlin', '2026-10-24T23:10:00Z', '2026-10-25T03:00:00Z'],
    ['America/New_York', '2026-03-08T06:10:00Z', '2026-03-08T09:00:00Z'],
    ['America/New_York', '2026-11-01T04:10:00Z', '2026-11-01T08:00:00Z'],
    ['Australia/Sydney', '2026-10-03T14:10:00Z', '2026-10-03T18:00:00Z'],
  ])('%s, after %s: is the one that cron fired for, each once', (timeZone, from, to) => {
    for (const expression of ['0 */15 * * * *', '0 0 * * * *', '30 */7 * * * *']) {
      const cronTime = new CronTime(expression, timeZone);
      const times = firings(cronTime, timeZone, from, to);
      expect(times.map((time) => new CronTicks(cronTime).firedAt(time + 3))).toEqual(times);
      expect(new Set(times).size).toBe(times.length);
    }
  });

  it('is one for a daily job in the hour that is skipped, and in the hour that is repeated', () => {
    const daily = '0 30 2 * * *';
    expect(tickAt(daily, at('2026-03-29T01:00:00.003Z'), 'Europe/Berlin')).toBe('2026-03-29T01:00:00Z');
    expect(tickAt(daily, at('2026-10-25T00:30:00.003Z'), 'Europe/Berlin')).toBe('2026-10-25T00:30:00Z');
  });

  it.each([
    ['Europe/Vienna', '0 30 2 * * *', '2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z'],
    ['Europe/Vienna', '* * 2 * * *', '2026-10-25T00:59:59Z', '2026-10-25T01:30:07Z'],
    ['America/New_York', '0 30 1 * * *', '2026-11-01T05:30:00Z', '2026-11-01T06:30:00Z'],
  ])('is no second one if an instance starts within the repeated hour: %s, %s', (zone, cron, due, again) => {
    const cronTime = new CronTime(cron, zone);
    // An instance that starts just before it fires for it.
    expect(cronTime.getNextDateFrom(new Date(at(again) - SECOND), zone).toMillis()).toBe(at(again));
    expect(tickAt(cron, at(again) + 3, zone)).toBe(due);
  });

  it.each([
    ['Australia/Sydney', '2026-04-04T16:00:00.003Z'],
    ['Australia/Sydney', '2026-04-04T16:20:00.003Z'],
    ['Australia/Lord_Howe', '2026-04-04T15:00:00.003Z'],
  ])('is found if cron itself goes back and forth: %s, %s', (timeZone, iso) => {
    const now = at(iso);
    const cronTime = new CronTime('0 */15 * * * *', timeZone);
    // 4.4 takes the hour that comes twice for the one before, in some zones.
    expect(cronTime.getNextDateFrom(new Date(now), timeZone).toMillis()).toBeLessThan(now);
    const tick = new CronTicks(cronTime).firedAt(now);
    expect(tick).toBeLessThanOrEqual(now);
    expect(tick).toBeGreaterThan(now - HOUR);
  });
});

describe('a job that fires once', () => {
  const due = at('2026-07-01T10:15:00.250Z');

  it.each([
    ['a Date', new Date(due)],
    ['a DateTime of luxon', new CronTime(new Date(due), 'Asia/Tokyo').source],
  ])('fires for its exact time, to the millisecond: %s', (_, source) => {
    // Called by hand, it may even be long before.
    for (const now of [due - DAY, due - 5, due, due + 5, due + DAY]) {
      const { tick } = cronTickAt(new CronTime(source as Date), now, resolveJobOptions({}, 'a test', TICK_OPTIONS));
      expect(tick).toBe(new Date(due).toISOString());
    }
  });
});

describe('for any schedule and any time, the tick', () => {
  const numbers = (min: number, max: number) =>
    fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 3 }).map((list) => list.join(','));
  const field = (min: number, max: number) =>
    fc.oneof(
      fc.constant('*'),
      numbers(min, max),
      fc.integer({ min: 2, max: Math.max(2, Math.floor(max / 2)) }).map((n) => `*/${n}`),
    );
  const expressions = fc
    .tuple(field(0, 59), field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6))
    .map((fields) => fields.join(' '));
  const times = fc.integer({ min: at('2024-01-01T00:00:00Z'), max: at('2029-12-31T00:00:00Z') });
  const options = { seed: 20_260_105, numRuns: runs(60, 30) };

  it('is not after now, and no other one lies between', () => {
    fc.assert(
      fc.property(expressions, times, (expression, now) => {
        const cronTime = new CronTime(expression, 'UTC');
        const tick = new CronTicks(cronTime).firedAt(now);
        expect(tick).toBeLessThanOrEqual(now + 10);
        expect(cronTime.getNextDateFrom(new Date(tick - SECOND), 'UTC').toMillis()).toBe(tick);
        expect(cronTime.getNextDateFrom(new Date(tick), 'UTC').toMillis()).toBeGreaterThan(now + 10);
      }),
      options,
    );
  });

  it('is the same for all instances, however late they fire, until the next one is due', () => {
    fc.assert(
      fc.property(expressions, times, fc.double({ min: 0, max: 1, noNaN: true }), (expression, time, share) => {
        const cronTime = new CronTime(expression, 'UTC');
        const tick = cronTime.getNextDateFrom(new Date(time), 'UTC').toMillis();
        const next = cronTime.getNextDateFrom(new Date(tick), 'UTC').toMillis();
        const late = Math.floor((next - 11 - tick) * share);
        expect([new CronTicks(cronTime).firedAt(tick - 10), new CronTicks(cronTime).firedAt(tick + late)]).toEqual([
          tick,
          tick,
        ]);
      }),
      options,
    );
  });
});
