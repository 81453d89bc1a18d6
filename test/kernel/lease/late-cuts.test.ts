import type { Lease } from '../../../lib/kernel/api/lease.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import type { Fate } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

/** The connection breaks, and what was written to it arrives later, after commands of the next connection. */
function brokenBefore(arrival: Promise<void>): Fate {
  return (execute) => {
    void arrival.then(execute).catch(() => {});
    return Promise.reject(new LockStoreError('unknown', 'the connection broke before the reply'));
  };
}

describe('a command that shortens a lease, and arrives late on a connection that was considered dead', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let arrival: ReturnType<typeof gate>;

  beforeEach(() => {
    world = new LockWorld();
    [a, b] = [world.instance('a'), world.instance('b')];
    arrival = gate();
  });

  /** It was renewed since. Then the old command arrives, and the lock ends with it. */
  async function arrivesLate(lease: Lease): Promise<void> {
    await world.clock.advance(500);
    expect(lease.isHeld()).toBe(true);
    a.store.next('renew', () => new Promise(() => {}));
    arrival.open();
    await settle();
    await world.clock.advance(1_500);
    const other = track(b.locks.acquire('stock', { waitMs: 100 }));
    await world.clock.advance(100);
    expect([lease.isHeld(), other.state]).not.toEqual([true, 'fulfilled']);
  }

  it('allows no second holder after an extension', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: 30_000 });
    await world.clock.advance(9_900);
    a.store.next('renew', brokenBefore(arrival.opened));
    await expect(lease.extend(1_000)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await arrivesLate(lease);
  });

  it('does not cost the lease: it is renewed often enough to be trusted', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: 30_000 });
    a.store.next('renew', brokenBefore(arrival.opened));
    await lease.extend(1_000).catch(() => {});
    await lease.extend(30_000);
    for (let second = 0; second < 20; second++) {
      await world.clock.advance(1_000);
      expect(lease.isHeld()).toBe(true);
      expect(lease.remainingMs()).toBeLessThanOrEqual(1_000);
    }
  });
});
