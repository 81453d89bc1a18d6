import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { LockObservers } from '../../../lib/kernel/events/observers.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { LockEventLog } from '../../../lib/nest/log/lock-event-log.js';
import { describeMissed, MissedLog } from '../../../lib/nest/log/missed-log.js';

const HOUR = 3_600_000;

function missed(times: readonly string[], changes: object = {}) {
  const about = { type: 'tickMissed', service: 'default', group: 'nightly', job: 'nightly', catchUp: false } as const;
  const ticks = times.map((time) => Date.parse(time));
  return { ...about, count: ticks.length, first: ticks[0]!, last: ticks.at(-1)!, ticks, ...changes };
}

function hours(from: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => new Date(Date.parse(from) + index * HOUR).toISOString());
}

describe('the line on missed ticks', () => {
  it.each([
    ['one', hours('2026-01-01T01:00:00Z', 1), '1 tick was missed of job "nightly": 2026-01-01 01:00 UTC.'],
    [
      'some',
      hours('2026-01-01T01:00:00Z', 3),
      '3 ticks were missed of job "nightly": 2026-01-01 01:00, 02:00, 03:00 UTC.',
    ],
    [
      'some of two days',
      hours('2026-01-01T23:00:00Z', 2),
      '2 ticks were missed of job "nightly": 2026-01-01 23:00, 2026-01-02 00:00 UTC.',
    ],
    ['some of a second', ['2026-01-01T01:00:05.000Z'], '1 tick was missed of job "nightly": 2026-01-01 01:00:05 UTC.'],
    ['many', hours('2026-01-01T01:00:00Z', 9), '9 ticks were missed of job "nightly": 2026-01-01 01:00 to 09:00 UTC.'],
  ])('names the times: %s', (_, times, begin) => {
    const end =
      times.length === 1
        ? 'No instance claimed it. It will not be caught up.'
        : 'No instance claimed them. They will not be caught up.';
    expect(describeMissed([missed(times)])).toBe(`${begin} ${end}`);
  });

  it('names a job once whose ticks were reported one after another', () => {
    const events = [hours('2026-01-01T01:00:00Z', 1), hours('2026-01-01T02:00:00Z', 2)].map((times) => missed(times));
    expect(describeMissed(events)).toMatch(
      /^3 ticks were missed of job "nightly": 2026-01-01 01:00, 02:00, 03:00 UTC\./,
    );
  });

  it('says that the ticks were due while all instances were shut down', () => {
    expect(describeMissed([missed(hours('2026-01-01T01:00:00Z', 1), { afterStop: true })])).toBe(
      '1 tick was missed of job "nightly": 2026-01-01 01:00 UTC. All instances had been shut down, so none claimed it. ' +
        'It will not be caught up.',
    );
  });

  it.each<[string, (job: number) => object, string]>([
    ['no run', () => ({}), 'No instance claimed them. They will not be caught up.'],
    ['runs of some', (job) => ({ catchUp: job > 4 }), 'No instance claimed them. One run follows for 3 of the jobs.'],
    [
      'runs of all',
      () => ({ catchUp: true, afterStop: true }),
      'All instances had been shut down, so none claimed them. One run follows for each job.',
    ],
  ])('names some jobs and counts the others, those with the most ticks first, with %s', (_, changes, end) => {
    const events = [1, 2, 3, 4, 5, 6, 7].map((job) =>
      missed(hours('2026-01-01T01:00:00Z', job), { job: `job-${job}`, ...changes(job) }),
    );
    expect(describeMissed(events)).toBe(
      '28 ticks were missed of 7 jobs: "job-7" (7), "job-6" (6), "job-5" (5), "job-4" (4), "job-3" (3) and 2 more jobs, ' +
        `2026-01-01 01:00 to 07:00 UTC. ${end}`,
    );
  });
});

describe('the log of missed ticks', () => {
  const LATE = { count: 1, first: 0, last: 0, ticks: [0] };

  function logOf(isProduction = true) {
    const lines: [line: string, isWarning: boolean][] = [];
    const clock = new FakeClock();
    const log = new MissedLog(clock, (...line) => void lines.push(line), isProduction);
    return { log, clock, lines };
  }

  it('is one line for the jobs of a downtime, however many, and one for the next', async () => {
    const { log, clock, lines } = logOf();
    for (let job = 0; job < 150; job++) {
      log.add(missed([], { ...LATE, job: `job-${job}` }));
      // On a busy machine, the last ones are found long after the first.
      await clock.advance(100);
    }
    expect(lines).toEqual([]);
    await clock.advance(5_000);
    expect(lines).toEqual([
      [expect.stringMatching(/^150 ticks were missed of 150 jobs: "job-0" \(1\), .* and 145 more jobs, /), true],
    ]);
    await clock.advance(600_000);
    for (let job = 0; job < 150; job++) {
      log.add(missed([], { ...LATE, job: `job-${job}` }));
      await clock.advance(4_000);
    }
    // Not for ever.
    expect(lines.length).toBeGreaterThan(5);
    await clock.advance(5_000);
    lines.splice(1);
    log.add(missed([], LATE));
    await clock.advance(5_000);
    expect(lines.slice(1)).toEqual([[expect.stringMatching(/^1 tick was missed of job "nightly"/), true]]);
  });

  it.each<[string, boolean, object, boolean]>([
    ['a warning', true, {}, true],
    ['none outside of production', false, {}, false],
    ['none after a shutdown of all instances', true, { afterStop: true }, false],
  ])('is %s', async (_, isProduction, changes, isWarning) => {
    const { log, clock, lines } = logOf(isProduction);
    log.add(missed([], { ...LATE, ...changes }));
    await clock.advance(5_000);
    expect(lines).toEqual([[expect.stringMatching(/See docs\/operations\/logs\.md#ticks-are-missed\.$/), isWarning]]);
  });

  it('is none after a restart, which takes less than a minute, but for a job that missed more', async () => {
    const { log, clock, lines } = logOf();
    const second = (ago: number): string => new Date(clock.wallNow() - ago * 1_000).toISOString();
    log.add(missed([second(2), second(1)]));
    await clock.advance(5_000);
    log.add(missed([second(2), second(1)]));
    log.add(missed([second(120)], { job: 'other' }));
    await clock.advance(5_000);
    expect(lines.map(([, isWarning]) => isWarning)).toEqual([false, true]);
  });

  it('is written at the shutdown, and by the logger of the lock service', () => {
    const written = jest.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    const observers = new LockObservers();
    const closing = new AbortController();
    const log = new LockEventLog();
    log.listenTo(observers, closing.signal, () => 0);
    observers.emit(missed(hours('2026-01-01T01:00:00Z', 1)));
    expect(written).not.toHaveBeenCalled();
    closing.abort();
    observers.emit(missed(hours('2026-01-01T02:00:00Z', 1)));
    log.close();
    const lines = written.mock.calls.map(([line]) => line as unknown);
    written.mockRestore();
    expect(lines).toEqual([
      '1 tick was missed of job "nightly": 2026-01-01 01:00 UTC. No instance claimed it. It will not be caught up. ' +
        'See docs/operations/logs.md#ticks-are-missed.',
      expect.stringContaining('2026-01-01 02:00 UTC'),
    ]);
  });
});
