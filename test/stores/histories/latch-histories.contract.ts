import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { LatchState, LatchStore } from '../../../lib/core/store/latch-store.js';
import { eventually } from '../../support/expect/eventually.js';
import { LONG_MS } from '../../../lib/testing/contract/requests.js';
import type { StoreSubject } from '../../../lib/testing/contract/subject.js';

/** A place for latches, which can end one before its time. */
export interface LatchSubject extends StoreSubject {
  /** The TTL of a latch is over, and so are the places of those that wait for it. */
  expireLatch(name: string): Promise<void>;
}

type Step =
  | { readonly verb: 'countDown'; readonly on: number; readonly id: string; readonly times: number }
  | { readonly verb: 'wait'; readonly on: number }
  | { readonly verb: 'read'; readonly on: number }
  | { readonly verb: 'expire' };
type Plan = { readonly count: number; readonly name: string; readonly step: Step };

const NAMES = ['a', 'b c'];
const on = fc.nat(1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      verb: fc.constant('countDown' as const),
      on,
      id: fc.constantFrom('1', '2', '3', '4', 'count', 'open'),
      times: fc.integer({ min: 1, max: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ verb: fc.constantFrom<'wait' | 'read'>('wait', 'read'), on }) as fc.Arbitrary<Step>,
  },
  { weight: 1, arbitrary: fc.constant({ verb: 'expire' as const }) },
);
const history: fc.Arbitrary<Plan[]> = fc.array(
  fc.record({
    count: fc.oneof({ weight: 5, arbitrary: fc.constant(3) }, { weight: 1, arbitrary: fc.constantFrom(1, 2) }),
    name: fc.constantFrom(...NAMES),
    step,
  }),
  { maxLength: 30 },
);

/** A latch as one would explain it. */
class Model {
  readonly #latches = new Map<string, { count: number; ids: Set<string>; waiting: Set<number> }>();
  /** What each client is told, in this order. */
  readonly told: string[][] = [[], []];

  apply({ name, count, step }: Plan): { count: number; remaining: number } | undefined {
    if (step.verb === 'expire') return void this.#latches.delete(name);
    const latch = this.#latches.get(name) ?? { count, ids: new Set<string>(), waiting: new Set<number>() };
    if (step.verb !== 'read') this.#latches.set(name, latch);
    const remaining = () => Math.max(0, latch.count - latch.ids.size);
    if (latch.count === count && remaining() > 0) {
      if (step.verb === 'wait') latch.waiting.add(step.on);
      if (step.verb === 'countDown') latch.ids.add(step.id);
      if (remaining() === 0) for (const client of latch.waiting) this.told[client]!.push(`${count} ${name}`);
    }
    return { count: latch.count, remaining: remaining() };
  }
}

/** Whatever is done with latches, in whatever order and however often, each answer is the one of the model. */
export function describeLatchHistories(createSubject: () => Promise<LatchSubject>, runs: number): void {
  it('answers as the model does, in every history', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (plans) => {
        const subject = await createSubject();
        try {
          const told: string[][] = [[], []];
          const stores: LatchStore[] = [];
          for (const messages of told) {
            const { locks, latches } = await subject.open(`client-${stores.length}`);
            assert.ok(latches);
            locks.listen({
              granted: () => {},
              opened: (name, count) => void messages.push(`${count} ${name}`),
              reconnected: () => {},
            });
            stores.push(latches);
          }
          const model = new Model();
          for (const plan of plans) {
            const replies = await perform(subject, stores, plan);
            const expected = model.apply(plan);
            for (const { count, remaining } of replies) expect({ count, remaining }).toEqual(expected);
          }
          await eventually(() => expect(told).toEqual(model.told));
        } finally {
          await subject.close();
        }
      }),
      { numRuns: runs, seed: 20_260_101 },
    );
  });
}

async function perform(
  subject: LatchSubject,
  stores: LatchStore[],
  { name, count, step }: Plan,
): Promise<LatchState[]> {
  const terms = { name, count, ttlMs: LONG_MS };
  if (step.verb === 'expire') {
    await subject.expireLatch(name);
    return [];
  }
  const store = stores[step.on]!;
  if (step.verb === 'wait') return [await store.wait(terms, LONG_MS)];
  if (step.verb === 'read') return [await store.read(terms)];
  return Promise.all(Array.from({ length: step.times }, () => store.countDown(terms, step.id)));
}
