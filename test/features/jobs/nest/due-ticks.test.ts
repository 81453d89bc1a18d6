import fc from 'fast-check';
import { CronTicks } from '../../../../lib/features/jobs/nest/job-ticks.js';
import { at, DAY, firings, HOUR, iso, MOST, scheduleOf, SECOND } from './ticks-of-schedules.js';
import { runs } from '../../../support/simulation/runs.js';

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
