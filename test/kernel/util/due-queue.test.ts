import fc from 'fast-check';
import { type Due, DueQueue } from '../../../lib/kernel/util/alarms.js';
import { runs } from '../../support/simulation/runs.js';

class Entry implements Due {
  heapIndex = -1;

  constructor(public dueAt: number) {}
}

type Step =
  | { readonly kind: 'put'; readonly dueAt: number }
  | { readonly kind: 'move'; readonly which: number; readonly dueAt: number }
  | { readonly kind: 'remove'; readonly which: number }
  | { readonly kind: 'takeFirst' };

const dueAt = fc.integer({ min: 0, max: 30 });
const which = fc.nat(50);
/** Many more come than go, so that the heap is several levels deep. */
const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('put' as const), dueAt }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('move' as const), which, dueAt }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), which }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('takeFirst' as const) }) },
  ),
  { maxLength: 120, size: 'max' },
);

/** Takes everything out, the first first. */
function drain(queue: DueQueue<Entry>): number[] {
  const taken: number[] = [];
  for (let first = queue.first(); first; first = queue.first()) {
    taken.push(first.dueAt);
    queue.remove(first);
  }
  return taken;
}

describe('the due queue', () => {
  it('behaves like a sorted list, whatever is put, moved and removed', () => {
    fc.assert(
      fc.property(steps, (all: readonly Step[]) => {
        const queue = new DueQueue<Entry>();
        const model: Entry[] = [];
        const earliest = () => (model.length > 0 ? Math.min(...model.map((entry) => entry.dueAt)) : undefined);
        for (const step of all) {
          if (step.kind === 'put') {
            const entry = new Entry(step.dueAt);
            model.push(entry);
            queue.put(entry);
          } else if (step.kind === 'takeFirst') {
            const first = queue.first();
            if (first) {
              queue.remove(first);
              model.splice(model.indexOf(first), 1);
            }
          } else if (model.length > 0) {
            const entry = model[step.which % model.length]!;
            if (step.kind === 'move') {
              entry.dueAt = step.dueAt;
              queue.put(entry);
            } else {
              queue.remove(entry);
              model.splice(model.indexOf(entry), 1);
            }
          }
          // Compared without expect(), which would take most of the time of the suite.
          const isRight = queue.size === model.length && queue.first()?.dueAt === earliest();
          if (!isRight) expect([queue.size, queue.first()?.dueAt]).toEqual([model.length, earliest()]);
        }
        expect(drain(queue)).toEqual(model.map((entry) => entry.dueAt).sort((x, y) => x - y));
      }),
      { seed: 20_260_101, numRuns: runs(200) },
    );
  });

  it('returns all entries in order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (times) => {
        const queue = new DueQueue<Entry>();
        for (const time of times) queue.put(new Entry(time));
        expect(drain(queue)).toEqual([...times].sort((a, b) => a - b));
      }),
      { seed: 20_260_101 },
    );
  });

  it('ignores the removal of an unknown entry', () => {
    const queue = new DueQueue<Entry>();
    const entry = new Entry(1);
    queue.remove(entry);
    queue.put(entry);
    queue.remove(entry);
    queue.remove(entry);
    expect(queue.size).toBe(0);
  });
});
