import type { DeadlockedCall } from '../../../lib/kernel/api/errors.js';
import { findCycle, type NestedWait, deadlockedCalls } from '../../../lib/kernel/deadlocks/cycles.js';
import { cycleAmong, cyclesAmong } from '../../../lib/kernel/deadlocks/deadlock-watch.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

type Mode = NestedWait['mode'];

const wait = (
  instanceId: string,
  holds: readonly string[],
  resource: string,
  mode: Mode = 'exclusive',
): NestedWait => ({
  instanceId,
  isThisProcess: false,
  group: 'g',
  resource,
  mode,
  holds: holds.map((held) => ({ resource: held, mode })),
});

const among = (all: readonly NestedWait[]) => (resource: string) => all.filter((each) => each.resource === resource);
const namesOf = (cycle: readonly NestedWait[]) => cycle.map(({ instanceId }) => instanceId).join('');

describe('findCycle', () => {
  it('returns the shortest', () => {
    const a = wait('a', ['x'], 'y');
    expect(namesOf(findCycle(a, among([wait('b', ['z'], 'x'), wait('c', ['y'], 'z'), wait('d', ['y'], 'x')])))).toBe(
      'ad',
    );
  });

  it('names the lock that blocks each, if they hold more', () => {
    const cycle = findCycle(wait('a', ['x', 'v'], 'y'), among([wait('b', ['w', 'y'], 'v')]));
    expect(deadlockedCalls(cycle).map(({ holds }) => holds)).toEqual(['v', 'y']);
  });

  it.each([
    ['calls in a row', [wait('b', ['y'], 'z'), wait('c', ['z'], 'w')]],
    ['a cycle that the call only waits for', [wait('b', ['y'], 'z'), wait('c', ['z'], 'y')]],
    ['no call', []],
  ])('finds none among %s', (_name, others) => {
    expect(findCycle(wait('a', ['x'], 'y'), among(others))).toEqual([]);
  });

  it.each([
    ['read', 'read', 0],
    ['write', 'read', 1],
    ['read', 'write', 1],
    ['exclusive', 'exclusive', 1],
    ['semaphore', 'semaphore', 0],
    ['exclusive', 'semaphore', 0],
  ] as const)('takes %s behind %s as it is', (wanted, held, found) => {
    const a = { ...wait('a', [], 'y', wanted), holds: [{ resource: 'x', mode: 'exclusive' as const }] };
    const b = { ...wait('b', [], 'x'), holds: [{ resource: 'y', mode: held }] };
    expect(findCycle(a, among([b])).length > 0 ? 1 : 0).toBe(found);
  });

  it('follows no reader to a holder of unknown mode, and a writer to every holder', () => {
    const unknown = { ...wait('b', [], 'x'), holds: [{ resource: 'y' }] };
    expect(findCycle({ ...wait('a', ['x'], 'y'), mode: 'read' }, among([unknown]))).toEqual([]);
    expect(namesOf(findCycle(wait('a', ['x'], 'y'), among([unknown])))).toBe('ab');
  });
});

describe('cycleAmong', () => {
  const answer = (each: NestedWait, waitedMs: number) => ({ ...each, waitedMs });

  it('counts a wait only if it had begun before the first answer', () => {
    const a = wait('a', ['x'], 'y');
    const found = (waitedMs: number, startedAt: number) =>
      cycleAmong(
        { waits: [answer(wait('b', ['y'], 'x'), waitedMs)], readAt: 1_000, withinMs: 300 },
        { startedAt, nestedWait: () => a },
      );
    expect(found(300, 700)).toHaveLength(2);
    expect(found(299, 700)).toBeUndefined();
    expect(found(300, 701)).toBeUndefined();
  });
});

describe('cyclesAmong', () => {
  const answer = (each: NestedWait, waitedMs: number) => ({ ...each, waitedMs });

  it('returns each cycle once, of waits that had begun before the first answer', () => {
    const found = (waitedMs: number) => {
      const waits = [wait('a', ['x'], 'y'), wait('b', ['y'], 'x'), wait('c', ['v'], 'w'), wait('d', ['w'], 'v')];
      const told = cyclesAmong({
        waits: waits.map((each, index) => answer(each, index === 3 ? waitedMs : 300)),
        readAt: 1_000,
        withinMs: 300,
      });
      return told.map((calls) => calls.map(({ instanceId }) => instanceId).join(''));
    };
    expect(found(300)).toEqual(['ab', 'cd']);
    expect(found(299)).toEqual(['ab']);
  });

  it('limits the number of calls, so that it blocks no process', () => {
    // Each of 100 readers in a row of 30 resources wants to write the next one.
    const waits = Array.from({ length: 3_000 }, (_, i) => ({
      ...wait(`${i}`, [], `r${Math.floor(i / 100) + 1}`, 'write'),
      holds: [{ resource: `r${Math.floor(i / 100)}`, mode: 'read' as const }],
    }));
    let looks = 0;
    const counted = waits.map((each) => ({
      ...each,
      waitedMs: 300,
      get mode() {
        looks++;
        return each.mode;
      },
    }));
    expect(cyclesAmong({ waits: counted, readAt: 1_000, withinMs: 300 })).toEqual([]);
    expect(looks).toBeLessThan(500_000);
  });
});

/**
 * Calls take and leave locks as they like, and each process answers at a moment of its own. What is reported must have
 * been true of all of them at one moment.
 */
describe('a cycle that is reported', () => {
  const RESOURCES = ['v', 'w', 'x', 'y'];

  /** Runs four calls in a process each, which answered the same roll call. */
  const historyOf = (seed: number) => {
    const random = new SeededRandom(seed);
    const pick = (n: number) => Math.floor(random.fraction() * n);
    /** Each call: phases of holding one lock and waiting for another one, one after the other. */
    const calls = Array.from({ length: 4 }, () => {
      const phases: { from: number; to: number; holds: string; wants: string }[] = [];
      for (let at = pick(40); at < 200;) {
        const to = at + 1 + pick(120);
        const holds = RESOURCES[pick(4)]!;
        const wants = RESOURCES.filter((each) => each !== holds)[pick(3)]!;
        phases.push({ from: at, to, holds, wants });
        at = to + pick(10);
      }
      return phases;
    });
    const stateAt = (call: number, at: number) => calls[call]!.find(({ from, to }) => from <= at && at < to);
    const [askedAt, readAt] = [100, 100 + pick(60)];
    const waits = calls.flatMap((_, call) => {
      const answeredAt = askedAt + pick(readAt - askedAt + 1);
      const state = stateAt(call, answeredAt);
      return state ? [{ ...wait(`${call}`, [state.holds], state.wants), waitedMs: answeredAt - state.from }] : [];
    });
    return { askedAt, answers: { waits, readAt, withinMs: readAt - askedAt }, stateAt };
  };

  it.each<[string, (history: ReturnType<typeof historyOf>) => readonly (readonly DeadlockedCall[])[]]>([
    [
      'to a call at the end of its wait',
      ({ answers, stateAt }) => {
        const own = stateAt(0, answers.readAt);
        if (!own) return [];
        const others = answers.waits.filter(({ instanceId }) => instanceId !== '0');
        const call = { startedAt: own.from, nestedWait: () => wait('0', [own.holds], own.wants) };
        return [cycleAmong({ ...answers, waits: others }, call) ?? []];
      },
    ],
    ['to an operator', ({ answers }) => cyclesAmong(answers)],
  ])('%s existed at some moment', (_name, report) => {
    let reported = 0;
    for (let seed = 1; seed <= 3_000; seed++) {
      const history = historyOf(seed);
      for (const cycle of report(history)) {
        if (cycle.length > 0) reported++;
        for (const { instanceId, holds, wants } of cycle) {
          const then = history.stateAt(Number(instanceId), history.askedAt);
          expect({ seed, ...then }).toMatchObject({ seed, holds, wants });
        }
      }
    }
    expect(reported).toBeGreaterThan(50);
  });
});
