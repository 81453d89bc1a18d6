import { checkMissed, type TickOutcome } from './missed-ticks.js';

/** One that asked for a tick, and did not get it. */
function outcome(changes: Partial<TickOutcome> = {}): TickOutcome {
  return {
    job: 'report',
    tick: '09:00',
    on: 'anna',
    overlap: 'wait',
    onCrash: 'retry',
    hasStarted: false,
    hasEnded: false,
    isDone: true,
    isKilled: false,
    isLate: false,
    ...changes,
  };
}

const ran = { hasStarted: true, hasEnded: true };
const died = { isDone: false, isKilled: true };

function rules(...outcomes: TickOutcome[]): string[] {
  return checkMissed(outcomes).violations.map(({ rule }) => rule);
}

describe('a tick is not missed', () => {
  it('where one of those who fired it ran it', () => {
    expect(rules(outcome(), outcome({ on: 'ben', ...ran }))).toEqual([]);
  });

  it('where it was run again after its runner died', () => {
    expect(rules(outcome({ ...died, hasStarted: true }), outcome({ on: 'ben', ...ran }))).toEqual([]);
  });

  it('where nobody who fired it is alive', () => {
    const result = checkMissed([outcome(died), outcome({ ...died, on: 'ben' })]);
    expect(result).toEqual({ violations: [], unstarted: { dropped: 0, diedWithClaimant: 1, outrun: 0 } });
  });

  it("where its runner died and onCrash is 'skip', whether it had begun or not", () => {
    const onCrash = 'skip';
    expect(rules(outcome({ ...died, onCrash, hasStarted: true }), outcome({ on: 'ben', onCrash }))).toEqual([]);
    expect(rules(outcome({ ...died, onCrash }), outcome({ on: 'ben', onCrash }))).toEqual([]);
  });

  it('where all who fired it and live were told that it is late, and a later one has run', () => {
    const late = outcome({ isLate: true });
    const later = outcome({ tick: '09:01', ...ran });
    const result = checkMissed([late, outcome({ ...died, on: 'ben', hasStarted: true }), later]);
    expect(result).toEqual({ violations: [], unstarted: { dropped: 0, diedWithClaimant: 0, outrun: 1 } });
    expect(rules(late)).toEqual(['missed']);
    expect(rules(late, outcome({ on: 'ben' }), later)).toEqual(['missed']);
  });

  it("where it was dropped, because overlap is 'skip'", () => {
    const result = checkMissed([outcome({ overlap: 'skip' }), outcome({ overlap: 'skip', on: 'ben' })]);
    expect(result).toEqual({ violations: [], unstarted: { dropped: 1, diedWithClaimant: 0, outrun: 0 } });
  });
});

it('a tick whose three runners died is over, with one who fired it alive', () => {
  const runners = ['ann', 'ben', 'cleo'].map((on) => outcome({ ...died, hasStarted: true, on }));
  expect(rules(...runners, outcome({ on: 'dan' }))).toEqual([]);
  expect(rules(...runners.slice(1), outcome({ on: 'dan' }))).toEqual(['missed']);
});

describe('a tick is missed', () => {
  it.each(['skip', 'retry'] as const)('where all who fired it live, and nobody ran it (onCrash: %s)', (onCrash) => {
    expect(rules(outcome({ onCrash }), outcome({ onCrash, on: 'ben' }))).toEqual(['missed']);
  });

  it("where its runner died and another one who fired it lives, and onCrash is 'retry'", () => {
    expect(rules(outcome({ ...died, hasStarted: true }), outcome({ on: 'ben' }))).toEqual(['missed']);
  });

  it('although the same tick of another job was run', () => {
    expect(rules(outcome(), outcome({ job: 'mail', ...ran }))).toEqual(['missed']);
  });
});

describe('a call is wrong', () => {
  it('that never comes back, on a process that lives', () => {
    expect(rules(outcome(ran), outcome({ on: 'ben', isDone: false }))).toEqual(['never came back']);
  });

  it('that is rejected', () => {
    const result = checkMissed([outcome({ ...ran, error: 'LockUnavailableError' })]);
    expect(result.violations).toEqual([{ rule: 'failed', what: 'report 09:00 on anna: LockUnavailableError' }]);
  });
});
