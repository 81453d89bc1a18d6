import { track } from '../support/expect/tracked.js';
import { settle } from '../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../support/world/lock-world.js';
import { failing, lostOnTheWay } from '../support/world/scripted-store.js';

describe("the operators' view", () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let operator: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
    operator = world.instance('operator');
  });

  const list = (options?: { prefix?: string; limit?: number }) => operator.locks.operators.list(options);
  const force = (resource: string, fencingToken: number) =>
    operator.locks.operators.forceRelease(resource, { fencingToken });

  it('lists what is held or waited for, sorted, and nothing else', async () => {
    await a.locks.acquire('stock', { mode: 'read' });
    await a.locks.semaphore('exports', { permits: 3 }).acquire({ count: 2 });
    const gone = await b.locks.acquire('gone');
    await gone.release();
    track(b.locks.acquire('stock', { mode: 'write' }));
    await settle();
    const states = await list();
    expect(states.map(({ resource, mode }) => [resource, mode])).toEqual([
      ['exports', 'semaphore'],
      ['stock', 'read'],
    ]);
    expect(states[0]).toMatchObject({
      permits: { total: 3, available: 1 },
      holders: [{ instanceId: 'a', permits: 2 }],
    });
    expect(states[1]!.waiters).toEqual([{ instanceId: 'b', mode: 'write', placeMs: 15_000, leaseMs: 15_000 }]);
    expect(JSON.stringify(states)).not.toContain('secret');
  });

  it('shows the local calls that wait for a holder of the same process as waiters', async () => {
    await a.locks.acquire('stock', { mode: 'write' });
    track(a.locks.acquire('stock', { mode: 'read' }));
    await settle();
    expect((await a.locks.inspect('stock')).waiters).toEqual([{ instanceId: 'a', mode: 'read' }]);
    expect((await b.locks.inspect('stock')).waiters).toEqual([]);
  });

  it.each([{ limit: 0 }, { limit: 10_001 }, { prefix: 5 }, { prefix: '\ud800' }, { pattern: '*' }])(
    'refuses to list %p',
    async (options) => {
      await expect(list(options as never)).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS' });
      expect(operator.store.commands).toHaveLength(0);
    },
  );

  it('takes options without a value for options that were left out', async () => {
    await a.locks.acquire('stock');
    const noOptions = { prefix: undefined, limit: undefined };
    expect(await list(noOptions as never)).toMatchObject([{ resource: 'stock' }]);
    const { instances } = await operator.locks.fleet({ ...noOptions, timeoutMs: undefined, group: undefined } as never);
    expect(instances.flatMap(({ held }) => held)).toMatchObject([{ resource: 'stock' }]);
  });

  it('throws if Redis does not answer', async () => {
    operator.store.all(lostOnTheWay);
    const asked = [track(list()), track(force('stock', 32)), track(operator.locks.inspect('stock'))];
    await world.clock.advance(1_000);
    for (const { error } of asked) expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'timeout' });
    expect(asked[0]!.error).toMatchObject({ message: expect.stringMatching(/^Redis could not list locks: /) });
  });

  describe('ends a lease by force', () => {
    it('grants the next waiter at once, and the holder notices at its next renewal', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 3_000 });
      const waiting = track(b.locks.acquire('stock'));
      await settle();
      expect(await force('stock', lease.fencingToken)).toBe(true);
      await settle();
      expect(waiting.value.fencingToken).toBeGreaterThan(lease.fencingToken);
      const { signal } = lease;
      await world.clock.advance(999);
      expect(signal.aborted).toBe(false);
      await world.clock.advance(1);
      expect(signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'takenOver' });
      await lease.release();
      expect(await waiting.value.verify()).toBe(true);
      expect(eventsOf(a, 'lost')).toHaveLength(1);
    });

    it('lets the local waiters of the holder ask again', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 3_000 });
      const waiting = track(a.locks.acquire('stock', { waitMs: Infinity }));
      await force('stock', lease.fencingToken);
      await world.clock.advance(1_000);
      expect(waiting.value.fencingToken).toBeGreaterThan(lease.fencingToken);
    });

    it('and reports at the call whose lease it was, who asked, and why', async () => {
      const lease = await a.locks.acquire('order:7', { label: { group: 'Orders.pay' } });
      const { fencingToken } = lease;
      const why = { by: 'anna', reason: 'it hangs' };
      await operator.locks.operators.forceRelease('order:7', { fencingToken, ...why });
      await operator.locks.operators.forceRelease('order:7', { fencingToken, ...why });
      expect(eventsOf(operator, 'forceReleased')).toEqual([
        expect.objectContaining({
          group: 'order',
          resource: 'order:7',
          fencingToken,
          holder: 'a',
          label: { group: 'Orders.pay' },
          ...why,
        }),
      ]);
    });

    it('even if the process of the holder is unknown', async () => {
      const { fencingToken } = await a.locks.acquire('stock');
      operator.store.next('inspect', failing('refused'));
      expect(await force('stock', fencingToken)).toBe(true);
      const [event] = eventsOf(operator, 'forceReleased');
      expect(event).toMatchObject({ resource: 'stock', fencingToken });
      expect(event).not.toHaveProperty('holder');
    });
  });
});

const IDLE = { resources: 0, leases: 0, orphanReleases: 0, lateGrants: 0, alarms: 0 };

describe('the figures of a lock client', () => {
  it('count holds and waits, and are zero when all have ended', async () => {
    const world = new LockWorld();
    const { locks } = world.instance('a');
    expect(locks.stats()).toEqual(IDLE);
    const lease = await locks.acquire('stock');
    const polled = await locks.tryAcquire('other');
    const waiting = track(locks.acquire('stock', { waitMs: 5_000 }));
    await settle();
    expect(locks.stats()).toEqual({ ...IDLE, resources: 1, leases: 2, alarms: 1 });
    await lease.release();
    await polled!.release();
    await settle();
    expect(locks.stats()).toMatchObject({ resources: 1, leases: 1 });
    await waiting.value.release();
    await settle();
    expect(locks.stats()).toEqual(IDLE);
  });

  it('count an unanswered release until its lock has expired', async () => {
    const world = new LockWorld();
    const a = world.instance('a');
    const lease = await a.locks.acquire('stock', { leaseMs: 1_000, attemptTimeoutMs: 100 });
    a.store.all(lostOnTheWay);
    const released = track(lease.release());
    await world.clock.advance(200);
    expect(released.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(a.locks.stats()).toMatchObject({ leases: 0, orphanReleases: 1 });
    await world.clock.advance(2_000);
    expect(a.locks.stats()).toEqual(IDLE);
  });
});
