import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MinimalSwitchSearch } from '../../../lib/extras/races/search/other-searches.js';
import { type OnDivergence, OrderSearch } from '../../../lib/extras/races/search/order-search.js';
import { lockedPrograms, type Program, programs, reach, type ReachOptions } from './random-program.js';

const diverged: OnDivergence = (step) => new Error(`it diverged at step ${step}`);
const everyOrder = (): MinimalSwitchSearch => new MinimalSwitchSearch(Infinity, diverged);
const pruned = (): OrderSearch => new OrderSearch(diverged);

/** A program with more orders than this is passed over: the work is in the largest, and what is left out shows in small ones. */
const MAX_ORDERS = 250;
const IS_LONG = process.env['TEST_SPEED'] === 'long';

interface CompareOptions extends ReachOptions {
  /** @default MAX_ORDERS */
  readonly mostOrders?: number;
}

async function compare(
  actors: Program,
  { mostOrders = MAX_ORDERS, ...options }: CompareOptions,
): Promise<{ all: number; run: number; stopped: number }> {
  const all = await reach(actors, everyOrder(), options, mostOrders);
  fc.pre(all.isComplete);
  const some = await reach(actors, pruned(), options);
  expect([...some.outcomes].toSorted()).toEqual([...all.outcomes].toSorted());
  expect(some.schedules).toBeLessThanOrEqual(all.schedules);
  return { all: all.schedules, run: some.schedules, stopped: some.stopped };
}

/** RACE_PROGRAMS=10 runs ten times as many. */
async function check(
  from: fc.Arbitrary<Program>,
  runs: number,
  options: CompareOptions,
  total: { all: number; run: number; stopped: number },
): Promise<void> {
  const one = async (actors: Program): Promise<void> => {
    const { all, run, stopped } = await compare(actors, options);
    total.all += all;
    total.run += run;
    total.stopped += stopped;
  };
  const numRuns = runs * Number(process.env.RACE_PROGRAMS ?? (IS_LONG ? 4 : 1));
  const seed = Number(process.env.RACE_SEED ?? 7);
  await fc.assert(fc.asyncProperty(from, one), { numRuns, seed, endOnFailure: true });
  if (process.env.RACE_PROGRAMS) console.log(total);
}

describe('the orders that are left out', () => {
  it.each([
    {
      when: 'actors share only what points name',
      most: 4,
      runs: 20,
      fewer: 10,
      options: { onlyNamed: true, mostOrders: 900 },
    },
    {
      when: 'code before the first point may touch anything',
      most: 3,
      runs: 15,
      fewer: 1.5,
      options: { onlyNamed: false },
    },
    {
      when: 'an actor is killed, or an object is spoiled',
      most: 2,
      runs: 5,
      fewer: 10,
      // Faults at each step multiply the orders.
      options: { onlyNamed: true, withFaults: true, mostOrders: 900 },
    },
  ])('have no outcome of their own: $when', async ({ most, runs, fewer, options }) => {
    const total = { all: 0, run: 0, stopped: 0 };
    await check(programs(most), runs, options, total);
    // Most orders are equal, and few schedules are started only to be pruned.
    expect(total.run).toBeLessThan(total.all / fewer);
    expect(total.stopped).toBeLessThan(total.run);
  });

  it.each([
    { when: 'with locks', most: 1, runs: 4, options: { onlyNamed: false } },
    { when: 'with locks, where actors share only what is named', most: 2, runs: 8, options: { onlyNamed: true } },
    ...(['kill', 'stall', 'lose'] as const).map((fault) => ({
      when: `with locks and the fault ${fault}`,
      most: 2,
      runs: 3,
      // With faults at each step, the pruned schedules take longest.
      options: { onlyNamed: true, faults: [fault], mostOrders: IS_LONG ? MAX_ORDERS : 100 },
    })),
  ])('have no outcome of their own: $when', async ({ most, runs, options }) => {
    const total = { all: 0, run: 0, stopped: 0 };
    await check(lockedPrograms(most), runs, options, total);
    expect(total.run).toBeLessThan(total.all);
  });

  it('have other outcomes if a point names too little', async () => {
    const careless: Program = [[{ do: 'move', as: 'y' }], [{ do: 'move', as: 'x' }]];
    const all = await reach(careless, everyOrder(), { onlyNamed: true });
    const some = await reach(careless, pruned(), { onlyNamed: true });
    expect([all.outcomes.size, some.outcomes.size]).toEqual([2, 1]);
  });

  it('all but one are pruned if actors share nothing, and all but two if they write one object once', async () => {
    const write = (object: string): Program[number][number] => ({ do: 'write', object });
    const apart = [
      [write('x'), write('x'), write('x')],
      [write('y'), write('y'), write('y')],
    ];
    const once = [
      [write('a'), write('x'), write('a')],
      [write('b'), write('x'), write('b')],
    ];
    const reading = [[{ do: 'read', object: 'x' }], [{ do: 'read', object: 'x' }]] as Program;
    const counts = async (actors: Program): Promise<number> =>
      (await reach(actors, pruned(), { onlyNamed: true })).schedules;
    expect(await Promise.all([counts(apart), counts(once), counts(reading)])).toEqual([1, 2, 1]);
  });
});
