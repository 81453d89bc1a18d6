import { LockQueueFullError, LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import { InvalidLockOptionsError, LockAbortedError } from '../../../lib/kernel/api/errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { rejection } from '../../support/expect/eventually.js';
import { track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { QuorumWorld } from '../../support/world/quorum-world.js';
import { failing, grantLost, lostOnTheWay, replyLost } from '../../support/world/scripted-store.js';

describe('maxAhead', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let c: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b, c] = ['a', 'b', 'c'].map((name) => world.instance(name)) as [Instance, Instance, Instance];
  });

  const wait = ({ locks }: Instance, maxAhead?: number, options: LockOptions = {}) =>
    track(locks.acquire('stock', { waitMs: Infinity, ...(maxAhead !== undefined && { maxAhead }), ...options }));
  const states = (calls: readonly { state: string }[]): string[] => calls.map(({ state }) => state);

  it('of 0 lets a call take a free resource, lets the next one wait for it, and refuses a third', async () => {
    const calls = [wait(a, 0), wait(a, 0), wait(a, 0)];
    await settle();
    expect(states(calls)).toEqual(['fulfilled', 'pending', 'rejected']);
    expect(calls[2]!.error).toMatchObject({ code: 'LOCK_QUEUE_FULL', maxAhead: 0, where: 'process' });
    expect(calls[2]!.error).toBeInstanceOf(LockQueueFullError);
    expect((calls[2]!.error as Error).message).toContain(
      'The queue for "stock" is too long: more than 0 calls would be ahead of this one (maxAhead)',
    );
  });

  it('counts the calls of other processes for the first call of a process', async () => {
    await a.locks.acquire('stock');
    const first = wait(b, 0);
    await settle();
    const calls = [wait(c, 0), wait(c, 1)];
    await settle();
    expect(states([first, ...calls])).toEqual(['pending', 'rejected', 'pending']);
    expect(calls[0]!.error).toMatchObject({ code: 'LOCK_QUEUE_FULL', maxAhead: 0, where: 'redis' });
    expect(world.server.listWaiters('stock')).toEqual(['b', 'c']);
  });

  it('counts calls of other processes together with those of its own', async () => {
    await a.locks.acquire('stock');
    wait(b);
    await settle();
    wait(c);
    await settle();
    // Ahead of them: the call of b, and c's own.
    const calls = [wait(c, 1), wait(c, 2), wait(c, 2), wait(c, 3)];
    await settle();
    expect(states(calls)).toEqual(['rejected', 'pending', 'rejected', 'pending']);
    expect(calls[0]!.error).toMatchObject({ maxAhead: 1, where: 'process' });
  });

  it('refuses a call as soon as its process learns its place', async () => {
    await a.locks.acquire('stock');
    wait(b);
    await settle();
    const calls = [wait(c), wait(c, 1), wait(c, 2), wait(c, 2)];
    expect(states(calls)).toEqual(['pending', 'pending', 'pending', 'pending']);
    await settle();
    expect(states(calls)).toEqual(['pending', 'rejected', 'pending', 'rejected']);
  });

  it('counts the waiters in Redis also if the own process holds the resource', async () => {
    await a.locks.acquire('stock');
    wait(b);
    await settle();
    const calls = [wait(a, 0), wait(a, 1)];
    await settle();
    expect(states(calls)).toEqual(['rejected', 'pending']);
    expect(calls[0]!.error).toMatchObject({ maxAhead: 0, where: 'redis' });
  });

  it('does not refuse a call that waits already, however many join ahead of it later', async () => {
    b.store.keepsNoPlaces();
    const holder = await a.locks.acquire('stock', { strictOrder: true });
    const patient = wait(b, 0);
    await settle();
    wait(c);
    await world.clock.advance(10_000);
    expect(b.store.sent('acquire').length).toBeGreaterThan(5);
    expect(patient.state).toBe('pending');
    await holder.release();
    await settle();
    expect(patient.state).toBe('fulfilled');
  });

  it('names the limit that was reached: maxWaiters if that is the smaller one', async () => {
    await a.locks.acquire('stock');
    wait(b);
    await settle();
    const call = wait(c, 5, { maxWaiters: 1 });
    await settle();
    expect(call.error).toMatchObject({ code: 'LOCK_QUEUE_FULL', maxWaiters: 1 });
    expect(call.error).not.toHaveProperty('maxAhead');
  });

  it('is refused together with retry, before anything is sent', async () => {
    const error = await rejection(a.locks.acquire('stock', { maxAhead: 1, retry: fixedInterval({ intervalMs: 100 }) }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({ option: 'maxAhead' });
    expect(a.store.commands).toEqual([]);
  });
});

describe('maxWaiters', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const wait = ({ locks }: Instance, maxWaiters: number, options: LockOptions = {}) =>
    track(locks.acquire('stock', { waitMs: Infinity, maxWaiters, ...options }));

  describe('in one process', () => {
    it('lets that many calls wait behind a holder of the process, and refuses one more at once', async () => {
      const holder = await a.locks.acquire('stock', { leaseMs: 3_000 });
      const calls = [1, 2, 3].map(() => wait(a, 2));
      await settle();
      expect(calls.map(({ state }) => state)).toEqual(['pending', 'pending', 'rejected']);
      expect(calls[2]!.error).toBeInstanceOf(LockQueueFullError);
      expect(calls[2]!.error).toMatchObject({
        code: 'LOCK_QUEUE_FULL',
        resource: 'stock',
        maxWaiters: 2,
        where: 'process',
        retryAfterMs: 3_000 - 32,
      });
      expect((calls[2]!.error as Error).message).toContain(
        'The queue for "stock" is full: 2 calls of this process are already waiting',
      );
      expect(eventsOf(a, 'notAcquired')).toMatchObject([{ resource: 'stock', error: { code: 'LOCK_QUEUE_FULL' } }]);
      await holder.release();
      await settle();
      expect(calls.map(({ state }) => state)).toEqual(['fulfilled', 'pending', 'rejected']);
    });

    it('does not count the call that takes a free resource: in one turn, or one after the other', async () => {
      const states = async (calls: { state: string }[]) => (await settle(), calls.map(({ state }) => state));
      expect(await states([1, 2, 3].map(() => wait(a, 1)))).toEqual(['fulfilled', 'pending', 'rejected']);
      const apart: ReturnType<typeof wait>[] = [];
      for (let i = 0; i < 3; i++) {
        apart.push(track(a.locks.acquire('order', { waitMs: Infinity, maxWaiters: 1 })));
        await world.clock.advance(60);
      }
      expect(await states(apart)).toEqual(['fulfilled', 'pending', 'rejected']);
    });

    it('counts a pending request once it has to wait, and ends the newest calls above the limit', async () => {
      await a.locks.acquire('stock', { leaseMs: 3_000 });
      const calls = [wait(b, 1), wait(b, 1), wait(b, 2), wait(b, 1)];
      await settle();
      expect(calls.map(({ state }) => state)).toEqual(['pending', 'rejected', 'pending', 'rejected']);
      expect(calls[1]!.error).toMatchObject({
        code: 'LOCK_QUEUE_FULL',
        where: 'process',
        holders: [{ instanceId: 'a' }],
      });
    });

    it('applies to the call that set it', async () => {
      await a.locks.acquire('stock');
      const calls = [wait(a, 5), wait(a, 5), wait(a, 1), wait(a, 5)];
      await settle();
      expect(calls.map(({ state }) => state)).toEqual(['pending', 'pending', 'rejected', 'pending']);
    });

    it('has room again when one has given up, or has been served', async () => {
      const holder = await a.locks.acquire('stock');
      const controller = new AbortController();
      const first = wait(a, 1, { signal: controller.signal });
      controller.abort();
      const second = wait(a, 1);
      await holder.release();
      await settle();
      const third = wait(a, 1);
      await settle();
      expect([first, second, third].map(({ state }) => state)).toEqual(['rejected', 'fulfilled', 'pending']);
    });
  });

  describe('in the queue of the store', () => {
    it('lets that many processes wait, and refuses one more at once', async () => {
      const c = world.instance('c');
      const holder = await a.locks.acquire('stock', { leaseMs: 3_000 });
      const inTime = wait(b, 1);
      await world.clock.advance(100);
      const late = wait(c, 1);
      await settle();
      expect(late.error).toMatchObject({
        code: 'LOCK_QUEUE_FULL',
        maxWaiters: 1,
        where: 'redis',
        retryAfterMs: 2_900,
      });
      expect((late.error as Error).message).toContain(
        '1 process is already waiting (maxWaiters), and the resource has been held by a for 100 ms',
      );
      expect(world.server.listWaiters('stock')).toEqual(['b']);
      expect(c.store.commands.map(({ verb }) => verb)).toEqual(['acquire']); // nothing to withdraw
      await holder.release();
      await settle();
      expect(inTime.value.isHeld()).toBe(true);
      await inTime.value.release();
      expect(world.server.isEmpty).toBe(true);
    });

    it('lets a waiter keep its place, even if it has to ask for it', async () => {
      b.store.keepsNoPlaces();
      await a.locks.acquire('stock');
      const waiting = wait(b, 1);
      await world.clock.advance(10_000);
      expect(waiting.state).toBe('pending');
      expect(b.store.sent('acquire').length).toBeGreaterThan(5);
    });

    it('refuses the call for whom a lease is rotated, if it waited behind a holder of its process until then', async () => {
      const holder = await a.locks.acquire('stock', { strictOrder: true });
      const own = [wait(a, 1), wait(a, 5)];
      const others = ['c', 'd'].map((name) => wait(world.instance(name), 5));
      await settle();
      expect(own[1]!.state).toBe('pending');
      await holder.release();
      await settle();
      expect(eventsOf(a, 'released')).toHaveLength(1);
      expect(own[0]!.error).toMatchObject({ where: 'redis', maxWaiters: 1 });
      expect(own[1]!.state).toBe('pending');
      expect(others.map(({ state }) => state)).toEqual(['fulfilled', 'pending']);
      expect(world.server.listWaiters('stock')).toEqual(['d', 'a']);
    });
  });
});

/** Each call replaces the older ones. */
const NEWEST: LockOptions = { cancellable: true, onBusy: 'cancelHolder' };

describe('only the newest call counts', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let c: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b, c] = [world.instance('a'), world.instance('b'), world.instance('c')];
  });

  const call = ({ locks }: Instance, options: LockOptions = NEWEST) =>
    track(locks.acquire('page', options) as Promise<Lease>);

  const granted = async (instance: Instance, options: LockOptions = NEWEST): Promise<Lease> =>
    (await instance.locks.acquire('page', options)) as Lease;

  describe.each(['of another process', 'of the same process'])('a holder %s', (where) => {
    let newer: Instance;

    beforeEach(() => (newer = where === 'of the same process' ? a : b));

    it('is asked to stop, keeps its lease until its work has ended, and never overlaps the newer call', async () => {
      const lease = await granted(a);
      const { signal } = lease;
      const next = call(newer);
      await settle();
      expect(signal.reason).toBeInstanceOf(LockAbortedError);
      expect(signal.reason).toMatchObject({
        code: 'LOCK_ABORTED',
        reason: 'superseded',
        supersededBy: newer === a ? 'a' : 'b',
        resource: 'page',
      });
      // It does not stop, and is renewed.
      await world.clock.advance(9_000);
      expect([next.state, lease.isHeld(), await lease.verify()]).toEqual(['pending', true, true]);
      await lease.release();
      await settle();
      expect(next.state).toBe('fulfilled');
      expect(next.value!.fencingToken).toBeGreaterThan(lease.fencingToken);
    });

    it('whose signal is first read later finds it aborted', async () => {
      const lease = await granted(a);
      call(newer);
      await settle();
      expect(lease.signal.aborted).toBe(true);
      expect(lease.isHeld()).toBe(true);
    });

    it('that continues is named by the error of the newer call, with the request to stop', async () => {
      await granted(a);
      const next = call(newer, { ...NEWEST, waitMs: 3_000 });
      await world.clock.advance(3_000);
      expect(next.error).toBeInstanceOf(LockTimeoutError);
      expect(next.error).toMatchObject({ cancelRequestedMsAgo: 3_000, holders: [{ instanceId: 'a' }] });
      expect((next.error as Error).message).toMatch(
        /has been held by .*\. The holder was asked to stop 3 s ago \(onBusy: 'cancelHolder'\)\.$/,
      );
      expect((next.error as Error).stack).toContain('was asked to stop 3 s ago');
    });
  });

  it('the latest call is granted, among calls that wait in several processes', async () => {
    const lease = await granted(a);
    const waits = [];
    for (const instance of [b, c, a, c, b]) {
      waits.push(call(instance));
      await settle();
    }
    expect(waits.map(({ state }) => state)).toEqual(['rejected', 'rejected', 'rejected', 'rejected', 'pending']);
    const by = waits.slice(0, 4).map(({ error }) => (error as LockAbortedError).supersededBy);
    expect(by).toEqual(['c', 'a', 'c', 'b']);
    expect(waits.slice(0, 4).map(({ error }) => (error as LockAbortedError).reason)).toEqual(
      Array.from({ length: 4 }, () => 'superseded'),
    );
    await lease.release();
    await settle();
    expect(waits[4]!.state).toBe('fulfilled');
    expect(world.server.resources()).toEqual(['page']);
  });

  it('a lease is not passed on in memory before an older call of another process, which it would end', async () => {
    const lease = await granted(a, { cancellable: true });
    const older = call(b, { onBusy: 'cancelHolder' });
    await settle();
    const newer = call(a, { cancellable: true });
    await settle();
    await lease.release();
    await settle();
    expect([older.state, newer.state]).toEqual(['fulfilled', 'pending']);
    await older.value!.release();
    await settle();
    expect(newer.value!.signal.aborted).toBe(false);
  });

  it('a forged message ends nothing', async () => {
    const lease = await granted(a);
    const waits = call(b, { cancellable: true });
    await settle();
    for (const { store } of [a, b]) {
      store.deliverNotice({ resource: 'page', by: 'x', leftMs: 0, sentAt: 0, isFor: () => false });
    }
    await settle();
    expect([lease.signal.aborted, waits.state]).toEqual([false, 'pending']);
  });

  it('a call fails if it has lost its place, because a newer call may have had its turn', async () => {
    const lease = await granted(a, { leaseMs: 60_000 });
    const waits = call(b, { ...NEWEST, waitMs: Infinity, leaseMs: 3_000 });
    await settle();
    b.store.fates.acquire = lostOnTheWay;
    await world.clock.advance(4_000);
    const newer = call(c, { ...NEWEST, waitMs: Infinity });
    await settle();
    delete b.store.fates.acquire;
    await world.clock.advance(3_000);
    expect(waits.error).toMatchObject({ code: 'LOCK_ABORTED', reason: 'superseded', supersededBy: 'c' });
    expect(newer.state).toBe('pending');
    await lease.release();
    await settle();
    expect(newer.state).toBe('fulfilled');
  });

  it('a call fails if it has lost its place to an unknown call', async () => {
    await granted(a, { leaseMs: 60_000 });
    const waits = call(b, { ...NEWEST, waitMs: Infinity, leaseMs: 3_000 });
    await settle();
    b.store.fates.acquire = lostOnTheWay;
    await world.clock.advance(4_000);
    delete b.store.fates.acquire;
    await world.clock.advance(3_000);
    expect(waits.error).toMatchObject({ code: 'LOCK_ABORTED', reason: 'superseded' });
    expect((waits.error as Error).message).toContain('its place in the queue was lost');
  });

  describe('an older call that reaches Redis late', () => {
    /** Starts a call now whose commands reach Redis later. */
    function late(options: LockOptions = NEWEST) {
      b.store.fates.acquire = failing('notExecuted', 'no connection');
      return call(b, { ...options, unavailableMs: Infinity });
    }
    const arrives = async (): Promise<void> => {
      delete b.store.fates.acquire;
      await world.clock.advance(1_000);
    };

    it('fails, and ends neither the newer holder nor the newer waiter', async () => {
      const older = late();
      await world.clock.advance(500);
      const holder = await granted(a);
      const waiter = call(c);
      await world.clock.advance(500);
      await arrives();
      expect(older.error).toBeInstanceOf(LockAbortedError);
      expect(older.error).toMatchObject({ reason: 'superseded', supersededBy: 'c' });
      // By the newer call.
      expect(holder.signal.reason).toMatchObject({ supersededBy: 'c' });
      expect(waiter.state).toBe('pending');
      await holder.release();
      await settle();
      expect(waiter.state).toBe('fulfilled');
      expect(waiter.value!.signal.aborted).toBe(false);
    });

    it('fails even if the newer call has ended: its result stays', async () => {
      const older = late();
      await world.clock.advance(500);
      await (await granted(a)).release();
      await arrives();
      expect(older.error).toMatchObject({ code: 'LOCK_ABORTED', supersededBy: 'a' });
      expect(world.server.resources()).toEqual([]);
    });

    it('fails even if it has waited for its turn in its process', async () => {
      const plain = await granted(b, { strictOrder: true });
      const waits = call(b, { strictOrder: true });
      const older = late();
      await world.clock.advance(500);
      const newer = call(a);
      await settle();
      await arrives();
      await plain.release();
      await settle();
      expect(older.state).toBe('pending');
      await newer.value!.release();
      await settle();
      expect([waits.state, older.error]).toMatchObject(['fulfilled', { code: 'LOCK_ABORTED', supersededBy: 'a' }]);
    });

    it('waits for its turn if the newer call ends none', async () => {
      const older = late();
      await world.clock.advance(500);
      const newer = await granted(a, { cancellable: true });
      await arrives();
      expect([older.state, newer.signal.aborted]).toEqual(['pending', true]);
      await newer.release();
      await settle();
      expect(older.state).toBe('fulfilled');
    });
  });

  describe('the newest call', () => {
    it('is not older than itself: it asks again, even if its place or its grant was lost', async () => {
      const holder = await granted(a);
      b.store.next('acquire', replyLost);
      b.store.grantFate = grantLost;
      const newest = call(b, { ...NEWEST, leaseMs: 900 });
      await settle();
      await holder.release(); // grants it to b, which does not know
      await world.clock.advance(1_500);
      expect(newest.state).toBe('fulfilled');
    });

    it('is not compared with a time in the future: the clock of Redis was set back', async () => {
      await (await granted(a)).release();
      world.server.redis.set('lock:{page}:newest', `${world.clock.wallNow() + 60_000} a/1/x~!`);
      const next = call(b);
      await settle();
      expect(next.state).toBe('fulfilled');
    });
  });

  describe('is refused', () => {
    it.each<[string, LockOptions, string]>([
      [
        'a shared mode',
        { mode: 'read' },
        "in mode read several calls may use the resource at once. Use mode 'exclusive'",
      ],
      ['re-entry', { mode: 'reentrant' }, "Use mode 'exclusive'"],
      ['polling', { retry: fixedInterval({ intervalMs: 10 }) }, 'Leave retry out'],
      ['a call that does not wait', { waitMs: 0 }, 'Set waitMs'],
      ['a minimum', { minHoldMs: 10 }, 'Leave minHoldMs out'],
    ])('with %s', async (_what, options, why) => {
      for (const [said, newest] of [
        ["onBusy cannot be 'cancelHolder': ", { onBusy: 'cancelHolder' }],
        ['cancellable cannot be true: ', { cancellable: true }],
      ] as const) {
        const error = await a.locks.acquire('page', { ...options, ...newest }).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: 'INVALID_LOCK_OPTIONS' });
        expect((error as Error).message).toContain(said);
        expect((error as Error).message).toContain(why);
      }
      expect(a.store.commands).toEqual([]);
    });

    it('for tryAcquire, unless it waits', async () => {
      await expect(a.locks.tryAcquire('page', NEWEST)).rejects.toThrow('Set waitMs');
      expect(await a.locks.tryAcquire('page', { ...NEWEST, waitMs: 10 })).not.toBeNull();
    });

    it('for several resources', async () => {
      await expect(a.locks.acquire(['page', 'other'], NEWEST)).rejects.toMatchObject({ option: 'onBusy' });
      await expect(a.locks.acquire(['page', 'other'], { cancellable: true })).rejects.toThrow('another holder');
      expect(a.store.commands).toEqual([]);
      expect(a.locks.stats()).toMatchObject({ resources: 0, leases: 0 });
    });

    it('on a quorum, which says why', async () => {
      const { locks } = new QuorumWorld().client();
      await expect(locks.acquire('page', NEWEST)).rejects.toThrow(
        /onBusy cannot be 'cancelHolder': each node of a quorum/,
      );
      expect(locks.stats()).toMatchObject({ resources: 0 });
    });
  });
});
