import { checkTicks, type TickStart } from './ticks.js';

let tokens = 0;

/** A whole run of 10 ms, unless it is said otherwise. Each has a larger token than the one before. */
function start(changes: Partial<TickStart> & { startedAt: number }): TickStart {
  const { startedAt } = changes;
  return {
    job: 'report',
    tick: '09:00',
    on: 'anna',
    onCrash: 'retry',
    rerun: false,
    fencingToken: ++tokens,
    heldUntil: startedAt + 10,
    isWhole: true,
    ...changes,
  };
}

function rules(...starts: TickStart[]): string[] {
  return [...new Set(checkTicks(starts).map(({ rule }) => rule))];
}

describe('a history in which every tick starts once', () => {
  it('is empty', () => {
    expect(checkTicks([])).toEqual([]);
  });

  it('has runs one after another, whoever wrote them down first', () => {
    const runs = [0, 20, 40].map((startedAt) => start({ startedAt, tick: String(startedAt) }));
    expect(rules(...runs)).toEqual([]);
    expect(rules(...runs.toReversed())).toEqual([]);
  });

  it('has runs of different jobs at the same time, of ticks with the same name', () => {
    expect(rules(start({ startedAt: 0 }), start({ startedAt: 5, job: 'mail' }))).toEqual([]);
  });

  it('has the next run right when the lock was released', () => {
    expect(rules(start({ startedAt: 0 }), start({ startedAt: 10, tick: '09:01' }))).toEqual([]);
  });

  it('has a rerun after a run that died', () => {
    const died = start({ startedAt: 0, isWhole: false });
    expect(rules(died, start({ startedAt: 50, on: 'ben', rerun: true }))).toEqual([]);
  });

  it('has a rerun of a tick whose claimant died before it began', () => {
    expect(rules(start({ startedAt: 50, rerun: true }))).toEqual([]);
  });

  it('has reruns of reruns that died', () => {
    const died = [0, 50, 100].map((startedAt) => start({ startedAt, isWhole: false, rerun: startedAt > 0 }));
    expect(rules(...died, start({ startedAt: 150, rerun: true }))).toEqual([]);
  });

  it('has the start of a process that stood still between its grant and its start: it does not hold the lock', () => {
    const suspended = start({ startedAt: 100, heldUntil: 100, isWhole: false });
    const rescuer = start({ startedAt: 50, heldUntil: 200, on: 'ben', rerun: true });
    expect(rules(suspended, rescuer)).toEqual([]);
  });
});

describe('a history in which a tick starts twice', () => {
  it('one after another', () => {
    const twice = [start({ startedAt: 0 }), start({ startedAt: 20, on: 'ben' })];
    expect(rules(...twice)).toEqual(['duplicate', 'rerun of a whole run']);
    expect(rules(...twice.toReversed())).toEqual(['duplicate', 'rerun of a whole run']);
  });

  it('the second where the first has died, but is not called a rerun', () => {
    const died = start({ startedAt: 0, isWhole: false });
    expect(rules(died, start({ startedAt: 50, on: 'ben' }))).toEqual(['duplicate']);
  });

  it('the first start after a rerun', () => {
    const rerun = start({ startedAt: 0, isWhole: false, rerun: true });
    expect(rules(rerun, start({ startedAt: 50 }))).toEqual(['duplicate']);
  });

  it.each([true, false])('again although a crash was to be left at that (is whole: %s)', (isWhole) => {
    const first = start({ startedAt: 0, isWhole, onCrash: 'skip' });
    expect(rules(first, start({ startedAt: 50, rerun: true, onCrash: 'skip' }))).toContain('duplicate');
  });

  it('as a rerun of a run that nobody saw, although a crash was to be left at that', () => {
    expect(rules(start({ startedAt: 50, rerun: true, onCrash: 'skip' }))).toEqual(['duplicate']);
  });

  it('again after it had ended, and noted so', () => {
    expect(rules(start({ startedAt: 0 }), start({ startedAt: 20, on: 'ben', rerun: true }))).toEqual([
      'rerun of a whole run',
    ]);
  });

  it('again after the rerun had ended', () => {
    const died = start({ startedAt: 0, isWhole: false });
    const rerun = start({ startedAt: 20, rerun: true });
    expect(rules(died, rerun, start({ startedAt: 40, rerun: true }))).toEqual(['rerun of a whole run']);
  });

  it('again while its runner lives and holds the lock', () => {
    const slow = start({ startedAt: 0, heldUntil: 100, isWhole: false });
    expect(rules(slow, start({ startedAt: 50, on: 'ben', rerun: true }))).toEqual(['overlap']);
  });
});

describe('a history in which runs of a job overlap', () => {
  it('two ticks at the same time', () => {
    expect(rules(start({ startedAt: 0 }), start({ startedAt: 9, tick: '09:01' }))).toEqual(['overlap']);
  });

  it('a long run and the second one inside it', () => {
    const long = start({ startedAt: 0, heldUntil: 100 });
    const inside = start({ startedAt: 10, heldUntil: 20, tick: '09:01', isWhole: false });
    const alsoInside = start({ startedAt: 50, tick: '09:02' });
    expect(checkTicks([alsoInside, inside, long])).toHaveLength(2);
  });

  it('tokens that fall', () => {
    const [small, large] = [start({ startedAt: 20, tick: '09:01' }), start({ startedAt: 0 })];
    expect(rules(large, small)).toEqual(['token order']);
  });

  it('a token that two have', () => {
    expect(
      rules(start({ startedAt: 0, fencingToken: 7 }), start({ startedAt: 20, fencingToken: 7, tick: 'b' })),
    ).toEqual(['token order']);
  });
});

it('says who did what, and when', () => {
  const [first, second] = [start({ startedAt: 0 }), start({ startedAt: 9, tick: '09:01', on: 'ben' })];
  expect(checkTicks([first, second])).toEqual([
    {
      rule: 'overlap',
      at: 9,
      what:
        `report 09:00 on anna at 0.00, held to 10.00 (whole, token ${first.fencingToken}); and ` +
        `report 09:01 on ben at 9.00, held to 19.00 (whole, token ${second.fencingToken})`,
    },
  ]);
});
