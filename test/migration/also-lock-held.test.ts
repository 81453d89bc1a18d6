import type { LockOptions } from '../../lib/core/api/lock-options.js';
import { track } from '../support/expect/tracked.js';
import { type FakeForeignServer } from '../support/world/fake-foreign-lock.js';
import { ourOwnerIn, useForeignWorld } from './foreign-world.js';
import { eventsOf, type Instance, type LockWorld } from '../support/world/lock-world.js';
import { failing, lostOnTheWay } from '../support/world/scripted-store.js';

describe('a lease with the lock of another library', () => {
  let world: LockWorld;
  let server: FakeForeignServer;
  let a: Instance;
  let options: LockOptions;

  useForeignWorld({ leaseMs: 3_000 }, (here) => ({ world, server, a, options } = here));

  const ourOwner = (resource = 'stock') => ourOwnerIn(world, resource);

  it('is renewed in both, by one watchdog', async () => {
    const lease = await a.locks.acquire('stock', options);
    await world.clock.advance(30_000);
    expect(lease.isHeld()).toBe(true);
    const renewals = server.commands.filter(({ name }) => name === 'renew');
    expect(renewals).toHaveLength(30);
    expect(a.store.commands.filter(({ verb }) => verb === 'renew')).toHaveLength(30);
    expect(renewals.every(({ ms }) => ms === 3_000)).toBe(true);
  });

  it('is lost as soon as a renewal finds that theirs was taken over', async () => {
    const lease = await a.locks.acquire('stock', options);
    const { signal } = lease;
    server.put('old:stock', 'an old pod', 60_000);
    await world.clock.advance(1_001);
    expect(lease.isHeld()).toBe(false);
    expect(signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'foreignLost' });
    expect((signal.reason as Error).message).toMatch(/the lock "old:stock" of oldlock \(alsoLock\) was lost/);
    expect(eventsOf(a, 'lost')).toMatchObject([{ reason: 'foreignLost' }]);
    // The work may still be running: ours stays until it ends, and is renewed no more.
    expect(ourOwner()).toBeDefined();
    await lease.release();
    expect([ourOwner(), server.ownerOf('old:stock')]).toEqual([undefined, 'an old pod']);
    expect(eventsOf(a, 'releasedAfterLoss')).toHaveLength(1);
  });

  it('keeps theirs after the loss of ours until the work ends, and then releases it', async () => {
    const lease = await a.locks.acquire('stock', options);
    a.store.fates.renew = failing('unknown');
    await world.clock.advance(2_990);
    expect([lease.isHeld(), lease.signal.reason]).toMatchObject([false, { reason: 'notRenewed' }]);
    expect(server.ownerOf('old:stock')).toBeDefined();
    await lease.release();
    expect(server.ownerOf('old:stock')).toBeUndefined();
  });

  it('survives renewals of theirs that fail for a while, and tells of them', async () => {
    const lease = await a.locks.acquire('stock', options);
    server.troubles.renew.push({ failure: 'unknown' }, { failure: 'notExecuted' });
    await world.clock.advance(10_000);
    expect(lease.isHeld()).toBe(true);
    const failed = eventsOf(a, 'renewalFailed');
    expect(failed).toHaveLength(2);
    expect(failed[0]!.error.message).toMatch(
      /could not renew the lock "old:stock" of oldlock \(alsoLock\) beside "stock"/,
    );
    expect(eventsOf(a, 'renewalRecovered')).toMatchObject([{ failures: 2 }]);
  });

  it('is lost at the deadline of theirs, while ours is renewed', async () => {
    const lease = await a.locks.acquire('stock', options);
    server.troubles.renew = Array.from({ length: 100 }, () => ({ failure: 'unknown' as const }));
    await world.clock.advance(2_960);
    expect(lease.isHeld()).toBe(true);
    expect(lease.remainingMs()).toBeLessThanOrEqual(8);
    await world.clock.advance(10);
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: 'foreignLost' });
    // Before an old pod can have it.
    expect(server.ttlMs('old:stock')).toBeGreaterThan(0);
  });

  it('does not come back by an answer after the deadline', async () => {
    let answer!: () => void;
    const lease = await a.locks.acquire('stock', options);
    server.troubles.renew.push(
      { until: new Promise((resolve) => (answer = resolve)) },
      ...Array.from({ length: 100 }, () => ({ failure: 'unknown' as const })),
    );
    await world.clock.advance(2_980);
    expect(lease.isHeld()).toBe(false);
    answer();
    await world.clock.advance(10);
    expect(lease.isHeld()).toBe(false);
  });

  it('asks both when it is verified, and makes both longer when it is extended', async () => {
    const lease = await a.locks.acquire('stock', options);
    expect(await lease.verify()).toBe(true);
    await lease.extend(9_000);
    expect(lease.remainingMs()).toBe(9_000 - 92);
    expect(server.ttlMs('old:stock')).toBe(9_000);
    server.put('old:stock', 'an old pod', 60_000);
    expect(await lease.verify()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: 'foreignLost' });
  });

  it('ends a fixed lease as late as the caller asked for, though it has waited', async () => {
    server.put('old:stock', 'an old pod', 5_000);
    const waiting = track(a.locks.acquire('stock', { ...options, watchdog: false }));
    await world.clock.advance(5_200);
    const lease = waiting.value;
    const heldSince = eventsOf(a, 'acquired')[0]!.waitedMs;
    expect(heldSince).toBeGreaterThanOrEqual(5_000);
    expect(lease.remainingMs()).toBeGreaterThan(3_000 - 32 - 200);
    await world.clock.advance(3_000);
    expect(lease.signal.reason).toMatchObject({ reason: 'expired' });
    expect(server.names().filter((name) => name === 'renew')).toEqual([]);
    await world.clock.advance(200);
    expect([ourOwner(), server.ownerOf('old:stock')]).toEqual([undefined, undefined]);
  });

  it('counts maxHoldMs from when both are held, and keeps neither for longer', async () => {
    server.put('old:stock', 'an old pod', 5_000);
    const waiting = track(a.locks.acquire('stock', { ...options, maxHoldMs: 4_000 }));
    await world.clock.advance(5_200);
    const since = world.clock.now() - 5_200 + eventsOf(a, 'acquired')[0]!.waitedMs;
    const { signal } = waiting.value;
    await world.clock.advance(since + 3_990 - world.clock.now());
    expect(signal.aborted).toBe(false);
    await world.clock.advance(20);
    expect(signal.reason).toMatchObject({ reason: 'maxHold' });
    await world.clock.advance(100);
    expect([ourOwner(), server.ownerOf('old:stock')]).toEqual([undefined, undefined]);
  });

  it('keeps both taken until minHoldMs is over', async () => {
    const lease = await a.locks.acquire('stock', { ...options, minHoldMs: 2_000 });
    await world.clock.advance(500);
    await lease.release();
    expect(server.ttlMs('old:stock')).toBeGreaterThanOrEqual(1_500);
    expect(server.ttlMs('old:stock')).toBeLessThan(1_600);
    expect(ourOwner()).toBeDefined();
    await world.clock.advance(1_600);
    expect([ourOwner(), server.ownerOf('old:stock')]).toEqual([undefined, undefined]);
  });

  it('keeps no minimum of a call that did not get both', async () => {
    server.put('old:stock', 'an old pod', 60_000);
    await expect(a.locks.acquire('stock', { ...options, waitMs: 0, minHoldMs: 2_000 })).rejects.toThrow('oldlock');
    expect(ourOwner()).toBeUndefined();
  });

  it('releases theirs first, so that the next process does not find it taken', async () => {
    const b = world.instance('b');
    const lease = await a.locks.acquire('stock', options);
    const next = track(b.locks.acquire('stock', options));
    await world.clock.advance(10);
    await lease.release();
    await world.clock.advance(0);
    expect(next.value.isHeld()).toBe(true);
    expect(server.names()).toEqual(['acquire', 'release', 'acquire']);
  });

  it('releases ours too where the release of theirs has no answer, and says so', async () => {
    const lease = await a.locks.acquire('stock', options);
    server.troubles.release.push({ until: new Promise(() => {}) });
    const released = track(lease.release());
    await world.clock.advance(1_000);
    expect(released.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect((released.error as Error).message).toMatch(/could not release the lock "old:stock" of oldlock/);
    expect(ourOwner()).toBeUndefined();
    expect(eventsOf(a, 'releaseFailed')).toHaveLength(1);
    await world.clock.advance(100);
    // Sent again in the background.
    expect(server.ownerOf('old:stock')).toBeUndefined();
    expect(a.locks.stats().orphanReleases).toBe(0);
  });

  it('is released in the background where the caller wants that', async () => {
    const lease = await a.locks.acquire('stock', { ...options, backgroundRelease: true });
    server.troubles.release.push({ until: new Promise(() => {}) });
    await lease.release();
    const next = track(a.locks.acquire('stock', options));
    await world.clock.advance(900);
    expect(next.state).toBe('pending');
    await world.clock.advance(400);
    expect(next.value.isHeld()).toBe(true);
  });

  it('tells of a loss that only the release finds', async () => {
    const lease = await a.locks.acquire('stock', options);
    server.delete('old:stock');
    await lease.release();
    expect(eventsOf(a, 'lost')).toMatchObject([{ reason: 'foreignLost' }]);
    expect(eventsOf(a, 'released')).toEqual([]);
    expect(ourOwner()).toBeUndefined();
  });

  it('is drained at a shutdown, and both are released before the connections close', async () => {
    const lease = await a.locks.acquire('stock', options);
    const closed = track(a.locks.shutdown(10_000));
    await world.clock.advance(4_000);
    expect([closed.state, lease.isHeld(), server.open]).toEqual(['pending', true, 1]);
    await lease.release();
    await world.clock.advance(10);
    expect([closed.state, server.open, server.ownerOf('old:stock')]).toEqual(['fulfilled', 0, undefined]);
  });

  it('is left to expire where the work does not end, and the shutdown does not hang', async () => {
    const lease = await a.locks.acquire('stock', options);
    const closed = track(a.locks.shutdown(1_000));
    await world.clock.advance(1_300);
    expect(lease.signal.reason).toMatchObject({ reason: 'shutdown' });
    expect([closed.state, server.open]).toEqual(['fulfilled', 0]);
    await world.clock.advance(3_000);
    expect(server.ownerOf('old:stock')).toBeUndefined();
  });
});

describe('faults while both are acquired', () => {
  let world: LockWorld;
  let server: FakeForeignServer;
  let a: Instance;
  let options: LockOptions;

  useForeignWorld({ leaseMs: 3_000, waitMs: 1_500 }, (here) => ({ world, server, a, options } = here));

  const ourOwner = () => ourOwnerIn(world, 'stock');

  it('asks again after a failure, with the same owner value', async () => {
    server.troubles.acquire.push({ failure: 'notExecuted' }, { failure: 'unknown', isExecuted: true });
    const lease = track(a.locks.acquire('stock', options));
    await world.clock.advance(200);
    expect(lease.value.isHeld()).toBe(true);
    expect(new Set(server.commands.map(({ owner }) => owner)).size).toBe(1);
  });

  it('withdraws what may have been granted without an answer', async () => {
    server.troubles.acquire = Array.from({ length: 100 }, () => ({ failure: 'unknown' as const, isExecuted: true }));
    const lease = track(a.locks.acquire('stock', options));
    await world.clock.advance(1_510);
    expect(lease.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect((lease.error as Error).message).toMatch(
      /the lock "old:stock" of oldlock \(alsoLock\): the fake server says/,
    );
    await world.clock.advance(10);
    expect([server.ownerOf('old:stock'), ourOwner()]).toEqual([undefined, undefined]);
  });

  it('sends no release where nothing can have been granted', async () => {
    server.troubles.acquire = Array.from({ length: 100 }, () => ({ failure: 'notExecuted' as const }));
    const lease = track(a.locks.acquire('stock', options));
    await world.clock.advance(1_600);
    expect(lease.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(server.names()).not.toContain('release');
  });

  it('fails at once where the server refuses for good', async () => {
    server.troubles.acquire.push({ failure: 'refused' });
    const error = await a.locks.acquire('stock', options).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', cause: { failure: 'refused' } });
    expect(ourOwner()).toBeUndefined();
  });

  it('releases what is granted after the call gave up', async () => {
    let execute!: () => void;
    server.troubles.acquire.push({ until: new Promise((resolve) => (execute = resolve)) });
    const caller = new AbortController();
    const lease = track(a.locks.acquire('stock', { ...options, signal: caller.signal }));
    await world.clock.advance(100);
    caller.abort();
    await world.clock.advance(50);
    expect(lease.error).toMatchObject({ code: 'LOCK_ABORTED' });
    execute();
    await world.clock.advance(50);
    expect(server.ownerOf('old:stock')).toBeUndefined();
    expect(server.names().at(-1)).toBe('release');
  });

  it('says that the caller gave up, or the shutdown, where a single attempt has no answer', async () => {
    server.troubles.acquire.push({ until: new Promise(() => {}) }, { until: new Promise(() => {}) });
    const caller = new AbortController();
    const aborted = track(a.locks.acquire('stock', { ...options, waitMs: 0, signal: caller.signal }));
    await world.clock.advance(100);
    caller.abort();
    await world.clock.advance(0);
    expect(aborted.error).toMatchObject({ code: 'LOCK_ABORTED' });
    const closing = track(a.locks.acquire('stock', { ...options, waitMs: 0 }));
    await world.clock.advance(100);
    void a.locks.shutdown(1_000);
    await world.clock.advance(0);
    expect(closing.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
  });

  it('gives up at once where the lock was busy before and the present question has no answer', async () => {
    server.put('old:stock', 'an old pod', 60_000);
    const caller = new AbortController();
    const waiting = track(a.locks.acquire('stock', { ...options, signal: caller.signal }));
    await world.clock.advance(10);
    server.troubles.acquire.push({ until: new Promise(() => {}) });
    await world.clock.advance(200);
    caller.abort();
    await world.clock.advance(0);
    expect(waiting.error).toMatchObject({ code: 'LOCK_ABORTED' });
  });

  it('asks again for a grant whose answer came after its end', async () => {
    let execute!: () => void;
    server.troubles.acquire.push({ until: new Promise((resolve) => (execute = resolve)) });
    const lease = track(
      a.locks.acquire('stock', { ...options, leaseMs: 500, waitMs: 10_000, attemptTimeoutMs: 5_000 }),
    );
    await world.clock.advance(600);
    execute();
    await world.clock.advance(100);
    expect(lease.value.remainingMs()).toBeGreaterThan(300);
    expect(server.names().filter((name) => name === 'acquire')).toHaveLength(2);
  });

  it('ends with the loss of ours during the wait, and leaves theirs alone', async () => {
    server.put('old:stock', 'an old pod', 60_000);
    const lease = track(a.locks.acquire('stock', { ...options, waitMs: 60_000 }));
    await world.clock.advance(500);
    a.store.fates.renew = lostOnTheWay;
    await world.clock.advance(3_000);
    expect(lease.error).toMatchObject({ code: 'LEASE_LOST', reason: 'notRenewed' });
    expect(eventsOf(a, 'lost')).toEqual([]);
    expect(server.ownerOf('old:stock')).toBe('an old pod');
    expect(a.locks.stats()).toMatchObject({ leases: 0, resources: 0 });
  });

  it('leaves nothing behind for longer than a lease when the process dies', async () => {
    await a.locks.acquire('stock', options);
    a.store.all(lostOnTheWay);
    server.troubles.renew = Array.from({ length: 10 }, () => ({ until: new Promise<void>(() => {}) }));
    await world.clock.advance(3_000);
    expect([server.ownerOf('old:stock'), ourOwner()]).toEqual([undefined, undefined]);
  });
});
