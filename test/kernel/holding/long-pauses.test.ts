import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { lostOnTheWay } from '../../support/world/scripted-store.js';
import { ProcessClock } from '../../support/simulation/simulated-process.js';
import { track } from '../../support/expect/tracked.js';

const LEASE_MS = 3_000;
const TERMS: LockOptions = { leaseMs: LEASE_MS, waitMs: Infinity };

/** A pause is longer than a lease, the tries of a withdrawal, and the memory of late grants (two leases). */
describe.each([3 * LEASE_MS, 3_600_000])('a process that is blocked for %d ms', (pauseMs) => {
  let world: LockWorld;
  let clock: ProcessClock;
  /** The instance that is blocked. */
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    clock = new ProcessClock(world.clock, 0, 1);
    a = world.instance('a', { clock });
    b = world.instance('b');
    // Its commands are executed, but it reads no replies until it resumes.
    a.store.all(async (execute) => {
      try {
        return await execute();
      } finally {
        await new Promise<void>((resolve) => clock.whenAwake(resolve));
      }
    });
    a.store.grantFate = (deliver) => clock.whenAwake(deliver);
  });

  /** Blocks it; the other one gets the lock as soon as it is free. */
  async function block(): Promise<Lease> {
    clock.stop();
    const waiting = track(b.locks.acquire('stock', TERMS));
    await world.clock.advance(pauseMs);
    clock.continue();
    await world.clock.advance(2 * LEASE_MS);
    return waiting.value;
  }

  async function nothingIsLeft(next: Lease): Promise<void> {
    expect([next.isHeld(), await next.verify()]).toEqual([true, true]);
    await next.release();
    await world.clock.advance(2 * LEASE_MS);
    expect([world.server.isEmpty, world.clock.timers]).toEqual([true, 0]);
    expect(a.locks.stats().orphanReleases).toBe(0);
  }

  it('with a command on its way finds the grant expired, and requests it again', async () => {
    const acquiring = track(a.locks.acquire('stock', TERMS));
    const next = await block();
    expect(acquiring.state).toBe('pending');
    await next.release();
    await settle();
    await acquiring.value.release();
    expect(acquiring.value.fencingToken).toBeGreaterThan(next.fencingToken);
    expect(world.server.isEmpty).toBe(true);
  });

  it('after it gave up: a grant in that time ends with its lease, and its message changes nothing', async () => {
    const holder = await b.locks.acquire('stock', TERMS);
    const controller = new AbortController();
    // Its question is executed; the withdrawal is not.
    a.store.next('release', lostOnTheWay);
    const waiting = track(a.locks.acquire('stock', { ...TERMS, signal: controller.signal }));
    await settle();
    controller.abort();
    clock.stop();
    await holder.release(); // grants it to the one who has given up
    const next = await block();
    expect(waiting.error).toMatchObject({ code: 'LOCK_ABORTED' });
    expect(a.store.grants).not.toHaveLength(0);
    await nothingIsLeft(next);
    expect(a.locks.stats().lateGrants).toBeLessThanOrEqual(1);
  });

  it('after it gave up, with its request still on its way: the grant ends with its lease', async () => {
    let arrive = (): void => {};
    // The reply, and the message, are never read: the connection broke.
    a.store.next('acquire', (execute) => new Promise((resolve) => (arrive = () => void execute().then(() => resolve))));
    const controller = new AbortController();
    const waiting = track(a.locks.acquire('stock', { ...TERMS, signal: controller.signal }));
    await settle();
    controller.abort();
    await settle();
    expect(waiting.error).toMatchObject({ code: 'LOCK_ABORTED' });
    clock.stop();
    await world.clock.advance(pauseMs);
    arrive();
    clock.continue();
    const next = track(b.locks.acquire('stock', TERMS));
    await world.clock.advance(LEASE_MS - 1);
    expect(next.state).toBe('pending');
    await world.clock.advance(1_000);
    await nothingIsLeft(next.value);
  });
});
