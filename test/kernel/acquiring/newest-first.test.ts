import { LockAbortedError, LockTimeoutError } from '../../../lib/kernel/api/errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { QuorumWorld } from '../../support/world/quorum-world.js';
import { failing, grantLost, lostOnTheWay, replyLost } from '../../support/world/scripted-store.js';
import { track } from '../../support/expect/tracked.js';

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
        /is held by .*\. The holder was asked to stop 3 s ago \(onBusy: 'cancelHolder'\)\.$/,
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
