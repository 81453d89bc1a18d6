import type { Lease } from '../../lib/kernel/api/lease.js';
import { QuorumWorld } from '../support/world/quorum-world.js';
import { runs } from '../support/simulation/runs.js';

const SEEDS = runs(80, 40);
const SECTION_MS = 2;
/** By number of nodes: how many candidates times this is enough for all of them. Two and four nodes tie more often. */
const MAX_MS_EACH: Record<number, number> = { 2: 600, 3: 100, 4: 300, 5: 150 };

/** Candidates in processes of their own start in the same moment; each holds the lock once, for a moment. */
async function race(nodes: number, candidates: number, seed: number) {
  const world = new QuorumWorld({ nodes, seed, latencyMs: (random) => 0.2 + 5 * random.fraction() ** 3 });
  const clients = Array.from({ length: candidates }, () => world.client({ waitMs: 60_000 }));
  let holder: Lease | undefined;
  const run = async ({ locks }: (typeof clients)[number]): Promise<void> => {
    const lease = await locks.acquire('stock');
    if (holder?.isHeld()) throw new Error(`seed ${seed}: granted twice`);
    holder = lease;
    await new Promise<void>((resolve) => world.clock.setTimer(resolve, SECTION_MS));
    await lease.release();
  };
  const startedAt = world.clock.now();
  await world.until(Promise.all(clients.map(run)));
  return { world, tookMs: world.clock.now() - startedAt };
}

describe('votes that are split among those who start in the same moment', () => {
  it.each([2, 3, 4, 5])('are gathered at once where there are %i nodes', async (nodes) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const candidates = 2 + (seed % 7);
      const { world, tookMs } = await race(nodes, candidates, seed);
      expect({ seed, isQuick: tookMs < candidates * MAX_MS_EACH[nodes]! }).toEqual({ seed, isQuick: true });
      await world.clock.advance(100);
      expect(world.isEmpty).toBe(true);
      expect(world.clients.map(({ store }) => [store.size, store.quorum.alarms.size])).toEqual(
        world.clients.map(() => [0, 0]),
      );
    }
  });

  it('go to one call in most cases when no call waits, in no more than three tries', async () => {
    let without = 0;
    for (let seed = 1; seed <= 100; seed++) {
      const world = new QuorumWorld({ nodes: 3, seed, latencyMs: (random) => 0.2 + 5 * random.fraction() ** 3 });
      const clients = [world.client(), world.client(), world.client()];
      const leases = await world.until(Promise.all(clients.map(({ locks }) => locks.tryAcquire('stock'))));
      const granted = leases.filter((lease) => lease?.isHeld()).length;
      expect(granted).toBeLessThanOrEqual(1);
      if (granted === 0) without++;
      for (const { links } of clients) for (const { sent } of links) expect(sent).toBeLessThanOrEqual(6);
    }
    expect(without).toBeLessThan(20);
  });
});
