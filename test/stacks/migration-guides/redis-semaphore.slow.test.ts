import { type Public, usePods } from './pods.js';
import type { Imports } from './redis-semaphore/after.js';
import { ALONE, crowd, type Locked, toldOfLoss, whileHeld } from './stories.js';

describe('from redis-semaphore', () => {
  const { client, ofBoth } = usePods<Public<Imports>>({
    before: () => import('./redis-semaphore/before.js').then((it) => ({ ...it, Service: it.Imports })),
    after: () => import('./redis-semaphore/after.js').then((it) => ({ ...it, Service: it.Imports })),
  });

  it('one import at a time, however long it takes', async () => {
    const imports = await ofBoth(([one, two]) => crowd(1_800, [(work) => one.load(work), (work) => two.load(work)]));
    expect(imports).toEqual({ before: ALONE, after: ALONE });
  });

  it('one process cleans up', async () => {
    const cleaned = await ofBoth(async ([one, two]) => {
      const clean = (): Promise<boolean> => two.tryClean(async () => {});
      return [await whileHeld((work) => one.tryClean(work), clean), await clean()];
    });
    expect(cleaned).toEqual({ before: [false, true], after: [false, true] });
  });

  it('two downloads at a time, or a large one', async () => {
    const small = await ofBoth((pods) => {
      const calls = [...pods, ...pods].map(
        (pod): Locked =>
          (work) =>
            pod.download(false, work),
      );
      return crowd(50, calls);
    });
    expect(small).toEqual({ before: { ran: 4, atOnce: 2 }, after: { ran: 4, atOnce: 2 } });
    const large = await ofBoth(([one, two]) =>
      crowd(50, [(work) => one.download(true, work), (work) => two.download(false, work)]),
    );
    expect(large).toEqual({ before: ALONE, after: ALONE });
  });

  it('the signal of a lost lock aborts', async () => {
    const told = await ofBoth(([one]) =>
      toldOfLoss(
        3_000,
        (work) => one.load(work),
        () => client().flushall(),
      ),
    );
    expect(told).toEqual({ before: expect.any(Number), after: expect.any(Number) });
  });
});
