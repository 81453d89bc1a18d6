import { inspect } from 'node:util';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { PermitOptions } from '../../../lib/kernel/semaphore/semaphore-options.js';
import { gate, track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, failing, lostOnTheWay, replyLost } from '../../support/world/scripted-store.js';

const TOTAL = 5;

describe('releasePermits', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b] = [world.instance('a'), world.instance('b')];
  });

  const semaphore = ({ locks }: Instance) => locks.semaphore('exports', { permits: TOTAL });
  const acquire = (instance: Instance, count: number, options: PermitOptions = {}): Promise<Lease> =>
    semaphore(instance).acquire({ count, ...options });
  /** The permits of each holder in the store. */
  const stored = async () => (await b.locks.inspect('exports')).holders.map(({ permits }) => permits);

  /** Two calls that wait for four permits: the first by its place in the store, so that the second could take that. */
  async function waitingForFour() {
    const calls = [1, 2].map(() => track(acquire(a, 4)));
    await settle();
    return calls as [(typeof calls)[0], (typeof calls)[0]];
  }

  async function expectNothingLeft(): Promise<void> {
    await world.clock.advance(60_000);
    const sizes = [a, b].map(({ locks }) => locks['operators']['deps'].localQueues.size);
    expect([world.server.isEmpty, world.clock.timers, ...sizes]).toEqual([true, 0, 0, 0]);
  }

  it('releases some permits with one command, and keeps the lease, its end and its token', async () => {
    const lease = await acquire(a, 3);
    const { fencingToken } = lease;
    await world.clock.advance(5_000);
    const remainingMs = lease.remainingMs();
    expect(lease.permits).toBe(3);
    await lease.releasePermits(2);
    expect([lease.permits, lease.fencingToken, lease.remainingMs()]).toEqual([1, fencingToken, remainingMs]);
    expect([lease.isHeld(), await lease.verify(), await semaphore(a).available()]).toEqual([true, true, TOTAL - 1]);
    expect(a.store.sent('lowerPermits')).toMatchObject([{ count: 1 }]);
    await lease.release();
    await expectNothingLeft();
  });

  it('lets the same async context take the released permits again', async () => {
    await semaphore(a).using({ count: TOTAL }, async (lease) => {
      await expect(acquire(a, 2)).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
      await a.locks.currentOrThrow('exports').releasePermits(2);
      await expect(acquire(a, 3)).rejects.toThrow('holds 3 of the 5 permits');
      await (await acquire(a, 2)).release();
      expect(lease.permits).toBe(3);
    });
    await expectNothingLeft();
  });

  it('shows the permits that are left', async () => {
    const lease = await acquire(a, 3);
    await lease.releasePermits(1);
    expect(JSON.parse(JSON.stringify(lease))).toMatchObject({ mode: 'semaphore', permits: 2 });
    expect(inspect(lease)).toContain('permits: 2');
    const other = await a.locks.acquire('stock');
    expect([other.permits, 'permits' in JSON.parse(JSON.stringify(other))]).toEqual([undefined, false]);
  });

  describe('inside one process', () => {
    it('a lease is passed on to a call that wants as many as are left, and to no other', async () => {
      const first = await acquire(a, 3);
      const other = await acquire(b, 2);
      const waiting = [3, 3].map((count) => track(acquire(a, count)));
      await settle();
      await first.releasePermits(1);
      await first.release();
      await settle();
      // Not in memory: the store has two permits for it.
      expect(waiting.map(({ state }) => state)).toEqual(['fulfilled', 'pending']);
      expect(await stored()).toEqual([2, 3]);
      await waiting[0]!.value.releasePermits(1);
      for (const { value } of [waiting[0]!]) await value.release();
      await settle();
      await waiting[1]!.value.release();
      await other.release();
      await expectNothingLeft();
    });

    it('the next lease in memory has as many as are left', async () => {
      const first = await acquire(a, 3);
      const others = await acquire(b, 2);
      await first.releasePermits(1);
      const one = await acquire(b, 1);
      const next = [2, 2].map(() => track(acquire(a, 2)));
      await settle();
      const asked = a.store.sent('acquire').length + a.store.sent('rotate').length;
      await first.release();
      await settle();
      expect(next[0]!.value.permits).toBe(2);
      expect(a.store.sent('acquire').length + a.store.sent('rotate').length).toBe(asked);
      expect(await stored()).toEqual(expect.arrayContaining([2, 2, 1]));
      await next[0]!.value.releasePermits(1);
      expect([next[0]!.value.permits, (await stored()).toSorted((x, y) => x! - y!)]).toEqual([1, [1, 1, 2]]);
      for (const lease of [next[0]!.value, others, one]) await lease.release();
      await settle();
      await next[1]!.value.release();
      await expectNothingLeft();
    });
  });

  describe('without a reply', () => {
    /** A lease of four permits whose release of two was executed, and has no answer. */
    async function unclear(): Promise<Lease> {
      const lease = await acquire(a, 4);
      a.store.next('lowerPermits', replyLost);
      const releasing = track(lease.releasePermits(2));
      await world.clock.advance(1_000);
      expect(releasing.error).toMatchObject({
        code: 'LOCK_UNAVAILABLE',
        lastAttempt: 'timeout',
        message: 'Redis could not release permits of "exports": no answer within 1000 ms',
      });
      expect([lease.isHeld(), await stored()]).toEqual([true, [2]]);
      return lease;
    }

    it('the same call again releases none twice', async () => {
      const lease = await unclear();
      await lease.releasePermits(2);
      expect([lease.permits, await stored()]).toEqual([2, [2]]);
      await lease.release();
      await expectNothingLeft();
    });

    it('a call for fewer does not count on permits that may already be free', async () => {
      const lease = await unclear();
      await lease.releasePermits(1);
      expect([lease.permits, await stored()]).toEqual([2, [2]]);
      await lease.release();
      await expectNothingLeft();
    });

    it('the lease is not passed on in memory, because it may still be executed', async () => {
      const lease = await acquire(a, 4);
      const late = gate();
      a.store.next('lowerPermits', executedWhen(late.opened));
      track(lease.releasePermits(2));
      const [next, last] = await waitingForFour();
      expect(lease.permits).toBe(4);
      await lease.release();
      await settle();
      late.open();
      await settle();
      expect([next.value.permits, await stored()]).toEqual([4, [4]]);
      await next.value.release();
      await settle();
      await last.value.release();
      await expectNothingLeft();
    });

    it('a late reply changes nothing for a repeated call', async () => {
      const lease = await acquire(a, 4);
      const late = gate();
      a.store.next('lowerPermits', executedWhen(late.opened));
      const releasing = track(lease.releasePermits(1));
      await world.clock.advance(1_000);
      expect(releasing.state).toBe('rejected');
      late.open();
      await settle();
      await lease.releasePermits(1);
      expect([lease.permits, await stored()]).toEqual([3, [3]]);
      await lease.releasePermits(1);
      expect([lease.permits, await stored()]).toEqual([2, [2]]);
      await lease.release();
      await expectNothingLeft();
    });

    it('release() releases all that are left', async () => {
      const lease = await unclear();
      await lease.release();
      expect(await stored()).toEqual([]);
      await expectNothingLeft();
    });
  });

  it.each(['refused', 'notExecuted'] as const)(
    'that fails (%s) is sent again: it is not passed on in memory',
    async (failure) => {
      const lease = await acquire(a, 4);
      a.store.fates.lowerPermits = failing(failure);
      const releasing = track(lease.releasePermits(2));
      await world.clock.advance(1_000);
      expect(releasing.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'failed' });
      expect(lease.permits).toBe(4);
      delete a.store.fates.lowerPermits;
      await world.clock.advance(2_000);
      expect([lease.permits, await stored()]).toEqual([4, [2]]);
      const [next, last] = await waitingForFour();
      await lease.release();
      await settle();
      expect([next.value.permits, await stored()]).toEqual([4, [4]]);
      await next.value.release();
      await settle();
      await last.value.release();
      await expectNothingLeft();
    },
  );

  it('runs one call after another', async () => {
    const lease = await acquire(a, 4);
    await Promise.all([lease.releasePermits(1), lease.releasePermits(1)]);
    expect([lease.permits, await stored()]).toEqual([2, [2]]);
    const both = await Promise.allSettled([lease.releasePermits(1), lease.releasePermits(1)]);
    expect(both).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { option: 'permits' } }]);
    expect([lease.permits, await stored()]).toEqual([1, [1]]);
    await lease.release();
    await expectNothingLeft();
  });

  it('is no error if the lease is released in the same moment', async () => {
    const lease = await acquire(a, 4);
    const [next, last] = await waitingForFour();
    await Promise.all([lease.releasePermits(1), lease.release()]);
    await settle();
    expect([next.value.permits, await stored()]).toEqual([4, [4]]);
    await next.value.release();
    await settle();
    await last.value.release();
    await expectNothingLeft();
  });

  it('throws LeaseLostError if the lease has ended, and the lease is lost if only Redis knows about that', async () => {
    const released = await acquire(a, 2);
    await released.release();
    await expect(released.releasePermits(1)).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'released' });
    const lease = await acquire(a, 2);
    world.server.lose('exports');
    await expect(lease.releasePermits(1)).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'takenOver' });
    expect([lease.isHeld(), lease.signal.aborted]).toEqual([false, true]);
    expect(eventsOf(a, 'lost')).toMatchObject([{ reason: 'takenOver' }]);
    await lease.release();
    const silent = await acquire(a, 2, { leaseMs: 500, watchdog: false });
    a.store.fates.lowerPermits = lostOnTheWay;
    const releasing = track(silent.releasePermits(1));
    await world.clock.advance(1_000);
    expect(releasing.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await expect(silent.releasePermits(1)).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'expired' });
    await expectNothingLeft();
  });

  it.each([0, 3, 4, -1, 1.5, NaN, Infinity, '1', undefined, null])('refuses %p of three', async (count) => {
    const lease = await acquire(a, 3);
    await expect(lease.releasePermits(count as number)).rejects.toMatchObject({
      code: 'INVALID_LOCK_OPTIONS',
      option: 'permits',
      message: expect.stringMatching(
        /^releasePermits takes an integer from 1 to 2, because this lease has 3 permits; not .*\. Call release\(\) to release all of them\.$/,
      ),
    });
    expect([lease.permits, a.store.sent('lowerPermits')]).toEqual([3, []]);
  });

  it('refuses to release before minHoldMs has passed', async () => {
    const lease = await acquire(a, 3, { minHoldMs: 5_000 });
    await expect(lease.releasePermits(1)).rejects.toMatchObject({
      option: 'minHoldMs',
      message:
        'This lease keeps all its permits until its minHoldMs (5000) is over. Call releasePermits later, ' +
        'or acquire the permits in two leases.',
    });
    expect(a.store.sent('lowerPermits')).toEqual([]);
    await world.clock.advance(5_100);
    await lease.releasePermits(1);
    expect(await stored()).toEqual([2]);
    await lease.release();
    await expectNothingLeft();
  });

  it('refuses the only permit', async () => {
    const lease = await acquire(a, 1);
    await expect(lease.releasePermits(1)).rejects.toThrow('This lease has one permit. Call release() to release it.');
    await lease.release();
  });

  it.each(['exclusive', 'reentrant', 'read', 'write'] as const)('refuses a lease of mode %s', async (mode) => {
    for (const names of ['stock', ['x', 'y']]) {
      await using lease = await a.locks.acquire(names, { mode });
      expect(lease.permits).toBeUndefined();
      await expect(lease.releasePermits(1)).rejects.toMatchObject({
        code: 'INVALID_LOCK_OPTIONS',
        option: 'mode',
        message: `Only a lease of a semaphore has permits to release, not one of '${mode}'.`,
      });
    }
    expect(a.store.sent('lowerPermits')).toEqual([]);
  });
});
