import { checkHistory, HAND_OVER_MS, LOSS_MS, type SlowSpan } from '../../../../lib/extras/cli/try/check-history.js';
import { type TriedCall, toJsonLines } from '../../../../lib/extras/cli/try/history.js';
import { Pace } from '../../../../lib/extras/cli/try/paced-store.js';
import { findImpossible } from '../../../support/history/outside-checker.js';
import { FakeClock, settle } from '../../../support/world/fake-clock.js';

const LEASE_MS = 1_000;

interface Times {
  readonly asked?: number;
  readonly ended?: number;
  readonly end?: TriedCall['end'];
}

/** A lease of `a` that is held from `at` to `heldUntil`. */
function lease(token: number, at: number, heldUntil: number, also: Partial<TriedCall> & Times = {}): TriedCall {
  const { asked = at - 1, ended = heldUntil + 1, end = 'released', ...call } = also;
  return { key: 'a', mode: 'exclusive', lease: { at, token, heldUntil }, askedAt: asked, endedAt: ended, end, ...call };
}

const shared = { mode: 'shared' } as const;
const permits = (count: number) => ({ mode: 'semaphore', permits: count, total: 3 }) as const;

function broken(calls: readonly TriedCall[], slow: readonly SlowSpan[] = []): string[] {
  return checkHistory(calls, { leaseMs: LEASE_MS, slow }).violations.map(({ rule }) => rule);
}

/** Histories of a few calls, and the rule that each breaks. An outside checker sees the ones about holders and tokens. */
const HISTORIES: readonly [what: string, rule: string | undefined, calls: readonly TriedCall[]][] = [
  ['one after another', undefined, [lease(1, 10, 20), lease(2, 21, 30)]],
  ['readers beside each other', undefined, [lease(1, 10, 20, shared), lease(2, 12, 30, shared)]],
  ['readers whose tokens came in another order', undefined, [lease(2, 10, 20, shared), lease(1, 12, 30, shared)]],
  ['as many permits as there are', undefined, [lease(1, 10, 20, permits(1)), lease(2, 12, 30, permits(2))]],
  ['two resources', undefined, [lease(1, 10, 20), lease(1, 12, 30, { key: 'b' })]],
  ['a grant after its deadline', undefined, [lease(1, 10, 20), lease(2, 15, 15, { end: 'lost' })]],
  ['a lease that was lost and taken', undefined, [lease(1, 10, 20, { end: 'lost', ended: 40 }), lease(2, 21, 50)]],
  ['two holders', 'exclusion', [lease(1, 10, 20), lease(2, 19, 30)]],
  ['a second holder within the first', 'exclusion', [lease(1, 10, 50), lease(2, 20, 30)]],
  ['a writer beside a reader', 'exclusion', [lease(1, 10, 20, shared), lease(2, 12, 30)]],
  ['a reader beside a writer', 'exclusion', [lease(1, 10, 20), lease(2, 12, 30, shared)]],
  ['a permit too many', 'exclusion', [lease(1, 10, 20, permits(2)), lease(2, 12, 30, permits(2))]],
  ['a token twice', 'tokens', [lease(1, 10, 20), lease(1, 30, 40)]],
  ['a smaller token', 'tokens', [lease(2, 10, 20), lease(1, 30, 40)]],
  ['a smaller token of a reader', 'tokens', [lease(2, 10, 20), lease(1, 30, 40, shared)]],
];

describe('the checker of a try', () => {
  it.each(HISTORIES)('sees in "%s": %s', (_, rule, calls) => {
    expect(broken(calls)).toEqual(rule === undefined ? [] : [rule]);
  });

  it('demands that a lost lease is reported soon after its deadline, unless the process was blocked', () => {
    const late = [lease(1, 10, 500, { end: 'lost', ended: 501 + LOSS_MS })];
    expect(broken(late)).toEqual(['losses']);
    expect(broken(late, [{ from: 490, to: 600 }])).toEqual([]);
    expect(broken([lease(1, 10, 500, { end: 'lost', ended: 500 + LOSS_MS })])).toEqual([]);
  });

  it('demands that a free lock is granted to a waiting call', () => {
    const first = lease(1, 10, 500);
    const second = (at: number) => lease(2, at, at + 1, { asked: 20 });
    expect(broken([first, second(502 + HAND_OVER_MS)])).toEqual(['handOver']);
    expect(broken([first, second(502 + HAND_OVER_MS)], [{ from: 900, to: 1_000 }])).toEqual([]);
    expect(broken([first, second(501 + HAND_OVER_MS)])).toEqual([]);
    // A call that gives up waited as well.
    const refused: TriedCall = {
      key: 'a',
      mode: 'exclusive',
      askedAt: 20,
      endedAt: 502 + HAND_OVER_MS,
      end: 'refused',
    };
    expect(broken([first, refused])).toEqual(['handOver']);
  });

  it('gives Redis the time of a lease to free what nobody has released', () => {
    const dead = lease(1, 10, 500, { end: 'lost' });
    const next = (at: number) => lease(2, at, at + 1, { asked: 20 });
    expect(broken([dead, next(500 + 1.1 * LEASE_MS + HAND_OVER_MS)])).toEqual([]);
    expect(broken([dead, next(501 + 1.1 * LEASE_MS + HAND_OVER_MS)])).toEqual(['handOver']);
    const { slowestHandOverMs } = checkHistory([dead, next(1_900)], { leaseMs: LEASE_MS, slow: [] });
    expect(slowestHandOverMs).toBeCloseTo(300);
  });

  it('names the worst first', () => {
    const lost = lease(9, 10, 20, { end: 'lost', ended: 2_000 });
    expect(broken([lost, lease(5, 30, 40), lease(6, 35, 50)])).toEqual(['exclusion', 'tokens', 'tokens', 'losses']);
  });
});

describe('a history for other checkers', () => {
  it.each(HISTORIES)('shows one of them "%s": %s', (_, rule, calls) => {
    expect(findImpossible(toJsonLines(calls))).toHaveLength(rule === undefined ? 0 : 1);
  });

  it('has a line for each beginning and each end, in the order of time', () => {
    const unknown: TriedCall = { key: 'b', ...permits(2), askedAt: 102, endedAt: 109, end: 'unknown' };
    const calls = [lease(7, 105, 110, { asked: 100, end: 'lost', ended: 111 }), unknown, lease(8, 130, 131)];
    const lines = toJsonLines(calls).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
      { time: 0, process: 0, type: 'invoke', f: 'acquire', key: 'a', value: { mode: 'exclusive' } },
      {
        time: 2_000_000,
        process: 1,
        type: 'invoke',
        f: 'acquire',
        key: 'b',
        value: { mode: 'semaphore', permits: 2, total: 3 },
      },
      { time: 5_000_000, process: 0, type: 'ok', f: 'acquire', key: 'a', value: { mode: 'exclusive', token: 7 } },
      {
        time: 9_000_000,
        process: 1,
        type: 'info',
        f: 'acquire',
        key: 'b',
        value: { mode: 'semaphore', permits: 2, total: 3 },
      },
      expect.objectContaining({ time: 10_000_000, type: 'invoke', f: 'release', process: 0 }),
      {
        time: 11_000_000,
        process: 0,
        type: 'ok',
        f: 'release',
        key: 'a',
        value: { mode: 'exclusive', token: 7, lost: true },
      },
      // Process 1 may still do something.
      expect.objectContaining({ time: 29_000_000, process: 0 }),
      expect.objectContaining({ time: 30_000_000, process: 0 }),
      expect.objectContaining({ time: 31_000_000, process: 0 }),
      expect.objectContaining({ time: 32_000_000, process: 0 }),
    ]);
  });
});

describe('the pace of a try', () => {
  it('lets no more commands go in a second than it may, in order, however many there are', async () => {
    const clock = new FakeClock();
    const pace = new Pace(200, clock);
    const sent: { at: number; number: number }[] = [];
    const send = (number: number, commands?: number) =>
      pace.turn(commands).then(() => sent.push({ at: clock.now(), number }));
    for (let number = 0; number < 300; number++) void send(number);
    void send(300, 100);
    void send(301);
    await clock.advance(10_000);
    await settle();
    expect(sent.map(({ number }) => number)).toEqual(Array.from({ length: 302 }, (_, number) => number));
    for (const { at } of sent) {
      const inSecond = sent.filter((other) => other.at >= at && other.at < at + 1_000);
      expect(inSecond.length).toBeLessThanOrEqual(200);
    }
    // A hundred commands take the time of a hundred.
    expect(sent[301]!.at - sent[300]!.at).toBeCloseTo(500);
    // After a pause, the first one goes at once.
    const before = clock.now();
    void send(302);
    await settle();
    expect(sent.at(-1)).toEqual({ at: before, number: 302 });
  });
});
