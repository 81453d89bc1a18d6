// Many schedules in many zones: cron itself is asked for each tick of a night.
import { at, firings, HOUR, iso, MINUTE, MOST, scheduleOf } from './ticks-of-schedules.js';

/** Only the long form runs these zones, whose nights are like another's. */
const more = <T extends string[]>(...nights: T[]): T[] => (process.env['TEST_SPEED'] === 'long' ? nights : []);

describe('the ticks that were due on a night when the clocks change', () => {
  it.each([
    ['Europe/Vienna', '2026-03-28T20:00:00Z'],
    ['Europe/Vienna', '2026-10-24T20:00:00Z'],
    ['Australia/Lord_Howe', '2026-10-03T10:00:00Z'],
    ['Africa/Cairo', '2026-10-29T16:00:00Z'],
    ...more(
      ['America/New_York', '2026-11-01T00:00:00Z'],
      ['America/St_Johns', '2026-11-01T00:00:00Z'],
      ['Australia/Sydney', '2026-10-03T10:00:00Z'],
    ),
  ])('%s, after %s: the same as those of a scheduler that ran', async (zone, from) => {
    for (const expression of ['0 */15 * * * *', '0 30 2 * * *', '5,35 7 1-3 * * *', '0 0 * * * *', '0 30 23 * * *']) {
      const { ticks, cronTime } = scheduleOf(expression, zone);
      const to = at(from) + 14 * HOUR;
      const fired = firings(cronTime, zone, at(from), to);
      expect({ expression, ...(await ticks.between(at(from), to, MOST)) }).toEqual({
        expression,
        count: fired.length,
        first: fired[0],
        ticks: fired,
      });
    }
  });

  it.each([
    ['Australia/Sydney', '2026-04-04T15:00:00Z', '2026-04-04T17:00:00Z'],
    ['Australia/Lord_Howe', '2026-04-04T14:30:00Z', '2026-04-04T15:30:00Z'],
    ['Africa/Casablanca', '2026-02-15T01:00:00Z', '2026-02-15T03:00:00Z'],
    ...more(
      ['Pacific/Auckland', '2026-04-04T13:00:00Z', '2026-04-04T15:00:00Z'],
      ['America/Santiago', '2026-04-05T02:00:00Z', '2026-04-05T04:00:00Z'],
    ),
  ])('continue after the night in which cron itself goes back: %s', async (zone, begins, ends) => {
    for (const expression of ['0 */15 * * * *', '0 45 * * * *', '*/20 * * * * *']) {
      const { ticks } = scheduleOf(expression, zone);
      const [from, to] = [at(begins) - 2 * HOUR, at(ends) + 2 * HOUR];
      const found = (await ticks.between(from, to, Infinity)).ticks;
      expect([...found].sort((a, b) => a - b)).toEqual(found);
      expect(new Set(found).size).toBe(found.length);
      // Before and after it, as on any other night.
      const usual = (await scheduleOf(expression, 'UTC').ticks.between(from, to, Infinity)).ticks;
      const isFarOff = (tick: number): boolean => tick < at(begins) || tick > at(ends) + 30 * MINUTE;
      if (zone !== 'Australia/Lord_Howe') expect(found.filter(isFarOff)).toEqual(usual.filter(isFarOff));
      expect(found.at(-1)).toBeGreaterThan(to - HOUR);
    }
  });
});

describe('on a night when the clocks are set, in summer time (DST) and out of it', () => {
  const NIGHTS: [zone: string, change: string][] = [
    ['Europe/Vienna', '2026-03-29T01:00:00Z'],
    ['Europe/Vienna', '2026-10-25T01:00:00Z'],
    ['Asia/Beirut', '2026-10-24T21:00:00Z'],
    ...more<[string, string]>(
      ['Europe/London', '2026-10-25T01:00:00Z'],
      ['America/New_York', '2026-11-01T06:00:00Z'],
      ['America/Los_Angeles', '2026-03-08T10:00:00Z'],
    ),
  ];
  const SCHEDULES = ['30 2 * * *', '30 1 * * *', '10,50 0-2 * * *', '15 * * * *', '0 0,30 2,3 * * *'];

  it.each(NIGHTS)('an instance has the same ticks whenever it has started: %s', (zone, change) => {
    for (const expression of SCHEDULES) {
      const { ticks, cronTime } = scheduleOf(expression, zone);
      const until = at(change) + 3 * HOUR;
      const fired = firings(cronTime, zone, at(change) - 2 * HOUR, until);
      for (let start = at(change) - 2 * HOUR; start < at(change) + 2 * HOUR; start += 25 * MINUTE) {
        const found: number[] = [];
        for (let tick = ticks.after(start)!; tick <= until; tick = ticks.after(tick)!) found.push(tick);
        const due = fired.filter((tick) => tick > start);
        expect([expression, iso(start), ...found.map(iso)]).toEqual([expression, iso(start), ...due.map(iso)]);
      }
    }
  });
});
