import { CronTime } from 'cron';
import fc from 'fast-check';
import { cronTickAt, CronTicks } from '../../../../lib/features/jobs/nest/job-ticks.js';
import { resolveJobOptions, TICK_OPTIONS } from '../../../../lib/features/jobs/nest/singleton-options.js';
import { runs } from '../../../support/simulation/runs.js';
import { at, DAY, firings, HOUR, iso, MINUTE, MOST, scheduleOf, SECOND } from './ticks-of-schedules.js';

async function between(expression: string, from: string, to: string, zone?: string | null, utcOffset?: number) {
  const { count, ticks } = await scheduleOf(expression, zone, utcOffset).ticks.between(at(from), at(to), MOST);
  expect(ticks).toHaveLength(Math.min(count, MOST));
  return ticks.map(iso);
}

describe('the ticks that were due', () => {
  it.each([
    ['hourly', '0 * * * *', '2026-05-05T01:00:00Z', '2026-05-05T03:00:00Z', ['02:00', '03:00']],
    [
      'hourly, from between two',
      '0 * * * *',
      '2026-05-05T00:59:59.999Z',
      '2026-05-05T02:59:59.999Z',
      ['01:00', '02:00'],
    ],
    ['none', '0 * * * *', '2026-05-05T01:00:00Z', '2026-05-05T01:59:59.999Z', []],
    ['no time at all', '* * * * * *', '2026-05-05T01:00:00Z', '2026-05-05T01:00:00Z', []],
    ['time that runs backwards', '* * * * * *', '2026-05-05T01:00:00Z', '2026-05-05T00:00:00Z', []],
    [
      'in bursts',
      '0 0,30 9-10 * * *',
      '2026-05-05T09:10:00Z',
      '2026-05-06T09:00:00Z',
      ['09:30', '10:00', '10:30', '09:00'],
    ],
  ])('%s', async (_, expression, from, to, times) => {
    const ticks = await between(expression, from, to);
    expect(ticks.map((tick) => tick!.slice(11, 16))).toEqual(times);
  });

  it.each([
    ['a zone', 'Europe/Vienna', undefined, ['2026-06-30T22:30Z', '2026-07-01T22:30Z']],
    ['the zone of half an hour', 'Asia/Kolkata', undefined, ['2026-06-30T19:00Z', '2026-07-01T19:00Z']],
    ['an offset', null, -210, ['2026-07-01T04:00Z', '2026-07-02T04:00Z']],
  ])('are those of %s', async (_, zone, utcOffset, ticks) => {
    expect(await between('30 0 * * *', '2026-06-30T12:00:00Z', '2026-07-02T12:00:00Z', zone, utcOffset)).toEqual(ticks);
  });

  it.each(['0 0 30 2 *', '0 0 0 31 4 *'])('are none of a schedule that never fires: %s', async (expression) => {
    const { ticks } = scheduleOf(expression);
    expect(await ticks.between(at('2026-01-01T00:00:00Z'), at('2026-05-01T00:00:00Z'), MOST)).toEqual({
      count: 0,
      ticks: [],
    });
    expect(ticks.after(at('2026-01-01T00:00:00Z'))).toBeUndefined();
    expect(ticks.around(at('2026-01-01T00:00:00Z'))).toEqual({ before: undefined, after: undefined });
  });

  it('are counted, and the newest returned, if there are thousands: with one request per hour', async () => {
    const { ticks, asked } = scheduleOf('* * * * * *', 'Europe/Vienna');
    const [from, to] = [at('2026-05-05T10:20:30.500Z'), at('2026-05-08T11:40:31Z')];
    const found = await ticks.between(from, to, MOST);
    expect(found.count).toBe(Math.floor((to - from) / SECOND) + 1);
    expect(found.ticks).toEqual(Array.from({ length: MOST }, (_, index) => to - (MOST - 1 - index) * SECOND));
    expect(asked.times).toBeLessThan(500);
  });
});

describe('the ticks that were due on a night when the clocks change', () => {
  it.each([
    ['Europe/Vienna', 'forward', '2026-03-28T12:00:00Z', ['2026-03-29T01:00Z']],
    ['Europe/Vienna', 'back', '2026-10-24T12:00:00Z', ['2026-10-25T00:30Z']],
    ['America/New_York', 'forward', '2026-03-07T18:00:00Z', ['2026-03-08T07:00Z']],
    ['Australia/Sydney', 'back', '2026-04-04T03:00:00Z', ['2026-04-04T15:30Z']],
    // `cron` itself fires twice on that night.
    ['Australia/Lord_Howe', 'forward', '2026-10-03T03:00:00Z', ['2026-10-03T15:00Z', '2026-10-03T15:30Z']],
    ['America/Santiago', 'back', '2026-04-04T18:00:00Z', ['2026-04-05T06:30Z']],
  ])('%s, %s: one for a daily job', async (zone, _, from, ticks) => {
    const { ticks: found } = await scheduleOf('30 2 * * *', zone).ticks.between(at(from), at(from) + 23 * HOUR, MOST);
    expect(found.map(iso)).toEqual(ticks);
  });
});

describe('the ticks around a tick', () => {
  it.each([
    ['0 * * * *', 'UTC', '2026-05-05T10:00:00Z', '2026-05-05T09:00Z', '2026-05-05T11:00Z'],
    ['0 9 * * 1-5', 'UTC', '2026-05-04T09:00:00Z', '2026-05-01T09:00Z', '2026-05-05T09:00Z'],
    ['0 0 1 1 *', 'UTC', '2026-01-01T00:00:00Z', '2025-01-01T00:00Z', '2027-01-01T00:00Z'],
    ['30 2 * * *', 'Europe/Vienna', '2026-03-29T01:00:00Z', '2026-03-28T01:30Z', '2026-03-30T00:30Z'],
    ['30 2 * * *', 'Europe/Vienna', '2026-10-25T00:30:00Z', '2026-10-24T00:30Z', '2026-10-26T01:30Z'],
  ])('%s in %s at %s', (expression, zone, tick, before, after) => {
    const { ticks } = scheduleOf(expression, zone);
    const around = ticks.around(at(tick));
    expect([iso(around.before), iso(around.after)]).toEqual([before, after]);
  });

  it('cost one computation for each tick, if they are requested in turn', () => {
    const { ticks, asked } = scheduleOf('*/10 * * * * *');
    ticks.around(at('2026-05-05T10:00:00Z'));
    asked.times = 0;
    for (let tick = at('2026-05-05T10:00:10Z'); tick <= at('2026-05-05T10:01:00Z'); tick += 10 * SECOND) {
      expect(ticks.around(tick)).toEqual({ before: tick - 10 * SECOND, after: tick + 10 * SECOND });
    }
    expect(asked.times).toBe(6);
  });
});

describe('the text of a schedule', () => {
  it.each([
    ['another expression', ['0 1 * * *', 'UTC'], ['0 2 * * *', 'UTC']],
    ['another zone', ['0 1 * * *', 'UTC'], ['0 1 * * *', 'Asia/Tokyo']],
    ['an offset', ['0 1 * * *', 'UTC'], ['0 1 * * *', null, 60]],
  ] as const)('differs for %s', (_, [one, zone], [other, otherZone, utcOffset]) => {
    expect(scheduleOf(one, zone).ticks.text).not.toBe(scheduleOf(other, otherZone, utcOffset).ticks.text);
  });
});

describe('for any schedule', () => {
  const numbers = (min: number, max: number) =>
    fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 3 }).map((list) => list.join(','));
  const field = (min: number, max: number) => fc.oneof(fc.constant('*'), numbers(min, max));
  const expressions = fc
    .tuple(numbers(0, 59), field(0, 59), field(0, 23), fc.constantFrom('*', '1-20'), fc.constant('*'), field(0, 6))
    .map((fields) => fields.join(' '));
  const times = fc.integer({ min: at('2026-02-01T00:00:00Z'), max: at('2026-12-31T00:00:00Z') });

  it('between returns the ticks of cron, one by one', async () => {
    await fc.assert(
      fc.asyncProperty(
        expressions,
        times,
        fc.integer({ min: 0, max: 5 * HOUR }),
        async (expression, from, lengthMs) => {
          const { ticks, cronTime } = scheduleOf(expression, 'Europe/Vienna');
          const fired = firings(cronTime, 'Europe/Vienna', from, from + lengthMs);
          const found = await ticks.between(from, from + lengthMs, MOST);
          expect(found).toEqual({ count: fired.length, first: fired[0], ticks: fired.slice(-MOST) });
          for (const tick of fired.slice(-2)) expect(new CronTicks(cronTime).firedAt(tick + 3)).toBe(tick);
        },
      ),
      { seed: 20_260_105, numRuns: runs(25) },
    );
  });

  it('a shared object, in any order, answers like a new one', () => {
    fc.assert(
      fc.property(
        expressions,
        fc.constantFrom('UTC', 'Europe/Vienna'),
        fc.constantFrom('2026-03-29T01:00:00Z', '2026-10-25T01:00:00Z', '2026-06-10T09:00:00Z'),
        fc.array(fc.integer({ min: -30 * HOUR, max: 30 * HOUR }), { minLength: 2, maxLength: 12 }),
        (expression, zone, around, offsets) => {
          const { ticks: shared, cronTime } = scheduleOf(expression, zone);
          for (const time of offsets.map((offset) => at(around) + offset)) {
            const fresh = new CronTicks(cronTime);
            const tick = fresh.firedAt(time);
            expect(shared.firedAt(time)).toBe(tick);
            expect(shared.around(tick)).toEqual(new CronTicks(cronTime).around(tick));
            expect(shared.after(time)).toBe(fresh.after(time));
          }
        },
      ),
      { seed: 20_260_107, numRuns: runs(30) },
    );
  });

  it('the previous tick has this one as its next', () => {
    fc.assert(
      fc.property(expressions, times, (expression, time) => {
        const { ticks } = scheduleOf(expression);
        const tick = ticks.after(time)!;
        const { before, after } = ticks.around(tick);
        expect([ticks.after(before!), after]).toEqual([tick, ticks.after(tick)]);
        expect(tick - before!).toBeLessThan(40 * DAY);
      }),
      { seed: 20_260_106, numRuns: runs(25) },
    );
  });
});

describe('a tick that fires', () => {
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
});
