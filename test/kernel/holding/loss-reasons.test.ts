import { LeaseLostError } from '../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, lostOnTheWay } from '../../support/world/scripted-store.js';

const LEASE_MS = 3_000;

function lossOf(lease: Lease): string {
  const reason: unknown = lease.signal.reason;
  expect(reason).toBeInstanceOf(LeaseLostError);
  return (reason as Error).message;
}

describe('the error of a lease that was not renewed in time', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  it.each([
    ['asks the lease before its timers run', 0],
    ['hears of it from the late timer', 1],
  ])('has the time that the event loop was blocked, if the process %s', async (_how, timers) => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    const { signal } = lease;
    await world.clock.advance(500);
    world.clock.block(5_000);
    if (timers) await world.clock.advance(0);
    expect(lossOf(lease)).toBe(
      'The lease of "stock" is no longer held: no renewal was confirmed before its deadline, because the event loop ' +
        'was blocked for at least 4.8 s. Keep synchronous work short, give the process more CPU, or ' +
        'raise leaseMs (3000).',
    );
    expect(signal.aborted).toBe(true);
  });

  it('has the blocked event loop even if a renewal was pending when it began', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    a.store.next('renew', lostOnTheWay);
    await world.clock.advance(1_000);
    world.clock.block(LEASE_MS);
    expect(lossOf(lease)).toMatch(/blocked for at least 2.8 s/);
  });

  it('has the time without a reply of Redis, if the timers were on time', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    a.store.all(lostOnTheWay);
    await world.clock.advance(LEASE_MS);
    expect(lossOf(lease)).toBe(
      'The lease of "stock" is no longer held: Redis did not answer for 2 s. ' +
        'Raise leaseMs (3000) if leases have to outlive such an outage.',
    );
  });

  it('has the reply of Redis to the last renewal', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    a.store.fates.renew = failing('notExecuted', 'READONLY You can not write against a read only replica');
    await world.clock.advance(LEASE_MS);
    expect(lossOf(lease)).toMatch(
      /Redis confirmed no renewal for 2 s \(READONLY You can not write .*\)\. Raise leaseMs/,
    );
  });

  it('does not blame a block that ended before the last confirmed renewal', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    await world.clock.advance(500);
    world.clock.block(1_900);
    await world.clock.advance(100); // late, and confirmed
    expect(lease.isHeld()).toBe(true);
    a.store.all(lostOnTheWay);
    await world.clock.advance(2 * LEASE_MS);
    expect(lossOf(lease)).toMatch(/Redis did not answer for 2 s/);
  });
});

describe('renewals that fail and then succeed', () => {
  it('are reported once to the observers, with the number of failures and their duration', async () => {
    const world = new LockWorld();
    const a = world.instance('a');
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    const { fencingToken } = lease;
    a.store.fates.renew = () => Promise.reject(new LockStoreError('notExecuted', 'LOADING'));
    await world.clock.advance(1_500); // sent at 1000, 1200 and 1400
    a.store.fates.renew = undefined;
    await world.clock.advance(LEASE_MS);
    expect(eventsOf(a, 'renewalFailed')).toHaveLength(3);
    expect(eventsOf(a, 'renewalRecovered')).toMatchObject([
      { type: 'renewalRecovered', resource: 'stock', fencingToken, failures: 3, failedForMs: 600 },
    ]);
    expect(lease.isHeld()).toBe(true);
  });
});
