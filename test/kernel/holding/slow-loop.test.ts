import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';

const LEASE_MS = 12_000;
/** The interval of the watchdog. */
const CHECK_MS = LEASE_MS / 12;

describe('a blocked event loop', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  const told = () => eventsOf(a, 'eventLoopBlocked');

  /** Returns the reports about a blocked event loop that begins `atMs` after the grant. */
  async function block(atMs: number, forMs: number) {
    world = new LockWorld();
    a = world.instance('a');
    const lease = await a.locks.acquire('order:7', { leaseMs: LEASE_MS });
    await world.clock.advance(atMs);
    world.clock.block(forMs);
    await world.clock.advance(1);
    expect(told().length).toBeLessThan(2);
    return { lease, event: told()[0] };
  }

  it('is reported if it lasts longer than a third of a lease, whenever it begins', async () => {
    // Three renewals, in steps that meet no timer.
    for (let atMs = 0; atMs < LEASE_MS; atMs += 97) {
      const { lease, event } = await block(atMs, LEASE_MS / 3 + 1);
      const leftMs = Math.max(0, lease.remainingMs());
      expect({ atMs, lost: !lease.isHeld() }).toEqual({ atMs, lost: false });
      expect({ atMs, event }).toMatchObject({ atMs, event: { resource: 'order:7', leaseMs: LEASE_MS } });
      // Never more than it was, and what is missing is less than a check. The renewal has moved the deadline since.
      expect(event!.blockedMs).toBeLessThanOrEqual(LEASE_MS / 3 + 1);
      expect(event!.blockedMs).toBeGreaterThan(LEASE_MS / 3 - CHECK_MS);
      expect(event!.leftMs).toBeGreaterThan(0);
      expect(event!.leftMs).toBeLessThanOrEqual(leftMs);
    }
  });

  it('is not reported if it lasts less than a quarter of each lease, whenever it begins', async () => {
    for (let atMs = 0; atMs < LEASE_MS; atMs += 97) {
      const { event } = await block(atMs, LEASE_MS / 4);
      expect({ atMs, event }).toEqual({ atMs, event: undefined });
    }
  });

  it('is reported once, with the lease that ends first', async () => {
    for (const [resource, leaseMs] of [
      ['slow', 30_000],
      ['fast', 3_000],
      ['faster', 2_900],
    ] as const) {
      await a.locks.acquire(resource, { leaseMs });
    }
    await world.clock.advance(900);
    world.clock.block(1_200);
    await world.clock.advance(1);
    expect(told()).toMatchObject([{ resource: 'faster', group: 'faster', mode: 'exclusive', leaseMs: 2_900 }]);
    expect(told()[0]!.leftMs).toBeCloseTo(2_900 * 0.99 - 2 - 2_100, -1);
    expect(eventsOf(a, 'lost')).toEqual([]);
  });

  it('is not reported if no lease is at risk', async () => {
    await a.locks.acquire('slow', { leaseMs: 60_000 });
    await a.locks.acquire('fixed', { leaseMs: 1_000, watchdog: false });
    await world.clock.advance(9_000);
    world.clock.block(9_000);
    await world.clock.advance(60_000);
    expect(told()).toEqual([]);
  });

  it('is noticed by the one timer of the watchdog, which ends with the leases', async () => {
    const leases = [
      await a.locks.acquire('slow', { leaseMs: 30_000 }),
      await a.locks.acquire('fast', { leaseMs: 600 }),
    ];
    await world.clock.advance(2_000);
    expect(world.clock.timers).toBe(1);
    await leases[1]!.release();
    await world.clock.advance(5_000);
    // One for each check, and one for each renewal that comes before one.
    expect(await wakeUps(30_000)).toBeLessThanOrEqual(12 + 3);
    await leases[0]!.release();
    await world.clock.advance(5_000);
    expect(world.clock.timers).toBe(0);
  });

  /** The number of timers that fire in this time. */
  async function wakeUps(ms: number): Promise<number> {
    let count = 0;
    world.clock.onStep = () => count++;
    await world.clock.advance(ms);
    world.clock.onStep = () => {};
    return count;
  }
});
