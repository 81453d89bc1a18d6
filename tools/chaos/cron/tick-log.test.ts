import { startsOf, TickHistory, type TickLine } from './tick-log.js';

type Line<T> = T extends { call: number } ? Omit<T, 'on' | 'call'> : Omit<T, 'on'>;

/** The starts that one process wrote down: of its call 1, unless it is said otherwise. */
function startsFrom(...lines: (Line<TickLine> & { call?: number })[]) {
  const history = new TickHistory();
  history.add({ type: 'fired', on: 'anna', call: 1, at: 0, job: 'report', tick: '09:00' });
  for (const line of lines) history.add({ on: 'anna', call: 1, ...line } as TickLine);
  return startsOf(history.calls, () => 'retry');
}

const start = { type: 'start', at: 10, rerun: false, token: 7, remainingMs: 500 } as const;

describe('what is certain of a run', () => {
  it('that ended while it held the lock: it held it all the time', () => {
    const lines = [start, { type: 'end', at: 5_000, remainingMs: 300 }, { type: 'done', at: 5_010 }] as const;
    expect(startsFrom(...lines)).toEqual([
      {
        job: 'report',
        tick: '09:00',
        on: 'anna',
        onCrash: 'retry',
        rerun: false,
        fencingToken: 7,
        startedAt: 10,
        heldUntil: 5_000,
        isWhole: true,
      },
    ]);
  });

  it('that ended after its lease was lost: the lease that it began with', () => {
    const lines = [start, { type: 'end', at: 5_000, remainingMs: 0 }, { type: 'done', at: 5_010 }] as const;
    expect(startsFrom(...lines)).toMatchObject([{ heldUntil: 510, isWhole: false }]);
  });

  it('that was quick to lose its lease: nothing after its end', () => {
    const lines = [start, { type: 'end', at: 200, remainingMs: 0 }] as const;
    expect(startsFrom(...lines)).toMatchObject([{ heldUntil: 200 }]);
  });

  it('that may have lost its lease while it noted its end: it may be run again', () => {
    const lines = [start, { type: 'end', at: 5_000, remainingMs: 300 }, { type: 'done', at: 5_301 }] as const;
    expect(startsFrom(...lines)).toMatchObject([{ heldUntil: 5_000, isWhole: false }]);
  });

  it('that died: its lease, but not beyond its death', () => {
    expect(startsFrom(start, { type: 'killed', at: 4_000 })).toMatchObject([{ heldUntil: 510, isWhole: false }]);
    expect(startsFrom(start, { type: 'killed', at: 100 })).toMatchObject([{ heldUntil: 100, isWhole: false }]);
  });

  it('that died when it had done all', () => {
    const lines = [start, { type: 'end', at: 20, remainingMs: 490 }, { type: 'done', at: 25 }] as const;
    expect(startsFrom(...lines, { type: 'killed', at: 100 })).toMatchObject([{ heldUntil: 20, isWhole: true }]);
  });

  it('that began without a lease: that it began', () => {
    expect(startsFrom({ ...start, remainingMs: 0 })).toMatchObject([{ startedAt: 10, heldUntil: 10, isWhole: false }]);
  });
});

it('a call that started nothing is no start', () => {
  expect(startsFrom({ type: 'done', at: 5 })).toEqual([]);
});

it.each([
  ['a second start of a call', [start, start]],
  ['a line of a call that never began', [{ ...start, call: 2 }]],
  ['a call that is fired twice', [{ type: 'fired', at: 1, job: 'report', tick: '09:00' } as const]],
])('%s is a broken log, and no history', (_, lines) => {
  expect(() => startsFrom(...lines)).toThrow('anna');
});
