import type { LockStore } from '../../lib/kernel/store/lock-store.js';
import { QuorumWorld } from '../support/world/quorum-world.js';
import { track } from '../support/expect/tracked.js';

describe('on a quorum, a call that does not wait', () => {
  /** Nodes whose queues have so many dead processes that a reply takes several commands. */
  function crowd(links: readonly LockStore[], times: number): void {
    for (const link of links) {
      const acquire = link.acquire.bind(link);
      let left = times;
      link.acquire = async (...args) =>
        left-- > 0 ? { status: 'busy', ttlMs: 1, inconclusive: true } : acquire(...args);
    }
  }

  it('asks again at once while nodes have not come to the end of those who died', async () => {
    const world = new QuorumWorld();
    const { locks, links } = world.client();
    crowd(links.slice(1), 5);
    const trying = track(locks.tryAcquire('stock'));
    await world.clock.advance(1_000);
    expect(trying.value).toMatchObject({ resource: 'stock' });
  });

  it('is refused where the lock is held', async () => {
    const world = new QuorumWorld();
    const [holder, other] = [world.client(), world.client()];
    const holding = track(holder.locks.acquire('stock'));
    await world.clock.advance(100);
    expect(holding.value).toBeDefined();
    crowd(other.links.slice(2), 5);
    const trying = track(other.locks.tryAcquire('stock'));
    await world.clock.advance(1_000);
    expect(trying.value).toBeNull();
  });
});
