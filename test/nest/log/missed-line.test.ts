import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { LockObservers } from '../../../lib/core/events/observers.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { describeMissed } from '../../../lib/nest/log/logger-of.js';
import { LockEventLog } from '../../../lib/nest/log/lock-event-log.js';

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
        ? 'No instance claimed it. It is not made up for.'
        : 'No instance claimed them. They are not made up for.';
    expect(describeMissed(missed(times))).toBe(`${begin} ${end}`);
  });

  it('counts those that are not named', () => {
    const ticks = hours('2026-01-03T00:00:00Z', 100);
    const line = describeMissed(missed(ticks, { count: 4_000, first: Date.parse('2026-01-01T01:00:00.000Z') }));
    expect(line).toMatch(/^4000 ticks were missed of job "nightly": 2026-01-01 01:00 to 2026-01-07 03:00 UTC\./);
  });

  it('says that one run follows', () => {
    expect(describeMissed(missed(hours('2026-01-01T01:00:00Z', 2), { catchUp: true }))).toMatch(
      / One run for all of them follows\.$/,
    );
  });

  it('is a warning that names the page', () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const observers = new LockObservers();
    new LockEventLog().listenTo(observers, new AbortController().signal, () => 0);
    observers.emit(missed(hours('2026-01-01T01:00:00Z', 1)));
    const lines = warn.mock.calls.map(([line]) => line as unknown);
    warn.mockRestore();
    expect(lines).toEqual([
      '1 tick was missed of job "nightly": 2026-01-01 01:00 UTC. No instance claimed it. It is not made up for. ' +
        'See docs/operations/logs.md#ticks-are-missed.',
    ]);
  });

  it('is no warning after a restart, which takes less than a minute', () => {
    const log = jest.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    const observers = new LockObservers();
    const clock = new FakeClock();
    new LockEventLog('default', clock).listenTo(observers, new AbortController().signal, () => 0);
    const second = (ago: number): string => new Date(clock.wallNow() - ago * 1_000).toISOString();
    observers.emit(missed([second(2), second(1)]));
    const lines = log.mock.calls.map(([line]) => line as unknown);
    log.mockRestore();
    expect(lines).toEqual([expect.stringMatching(/^2 ticks were missed of job "nightly": /)]);
  });
});
