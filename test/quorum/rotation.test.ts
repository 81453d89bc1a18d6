import { QuorumWorld } from '../support/world/quorum-world.js';

const LEASE_MS = 1_000;

it('a lease is released although the next caller gives up before the nodes have answered', async () => {
  const world = new QuorumWorld({ latencyMs: () => 5 });
  const { locks } = world.client({ leaseMs: LEASE_MS, waitMs: 60_000 });
  const lease = await world.until(locks.acquire('stock'), LEASE_MS);
  const giveUp = new AbortController();
  const next = locks.acquire('stock', { signal: giveUp.signal }).catch(({ code }: { code: string }) => code);
  await world.clock.advance(50);
  const released = lease.release();
  await world.clock.advance(2);
  giveUp.abort();
  await world.until(released, LEASE_MS);
  expect(await world.until(next, LEASE_MS)).toBe('LOCK_ABORTED');
  await world.clock.advance(LEASE_MS);
  expect(world.isEmpty).toBe(true);
});
