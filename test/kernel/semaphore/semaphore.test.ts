import { inspect } from 'node:util';
import { InvalidLockOptionsError, LockModeMismatchError } from '../../../lib/kernel/api/errors.js';
import { LockReentryError } from '../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { PermitOptions, SemaphoreOptions } from '../../../lib/kernel/semaphore/semaphore-options.js';
import { rejection } from '../../support/expect/eventually.js';
import { gate, track, type Tracked } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, failing, lostOnTheWay, replyLost } from '../../support/world/scripted-store.js';

describe('a semaphore', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const semaphore = ({ locks }: Instance, permits = 3) => locks.semaphore('exports', { permits });
  const acquire = (instance: Instance, options: PermitOptions = {}) =>
    track(semaphore(instance).acquire({ waitMs: Infinity, ...options }));
  const states = (calls: Tracked<Lease>[]) => calls.map(({ state }) => state);
  const size = ({ locks }: Instance) => locks['operators']['deps'].localQueues.size;

  async function expectNothingLeft(): Promise<void> {
    await world.clock.advance(60_000);
    expect([world.server.isEmpty, world.clock.timers, size(a), size(b)]).toEqual([true, 0, 0, 0]);
  }

  it('returns null to a call that only tries', async () => {
    await semaphore(a).acquire({ count: 2 });
    expect(await semaphore(b).tryAcquire({ count: 2 })).toBeNull();
    expect((await semaphore(b).tryAcquire())!.mode).toBe('semaphore');
  });

  it.each([undefined, null])('accepts %p as no options', async (none) => {
    const lease = await semaphore(a).acquire(none as never);
    expect(await semaphore(b).available()).toBe(2);
    await lease.release();
    await expectNothingLeft();
  });

  it.each([
    [() => semaphore(a, 0), 'permits'],
    [() => a.locks.semaphore('exports', {} as never), 'permits is missing'],
    [() => a.locks.semaphore('exports', { permits: 2, count: 1 } as never), 'count'],
    [() => a.locks.semaphore('', { permits: 2 }), 'the name is empty'],
  ])('refuses invalid input (%#)', (make, message) => {
    expect(make).toThrow(message);
  });

  describe('inside one process', () => {
    it('passes permits on in memory, in the order of the calls; the waiter keeps its place for the next', async () => {
      const holders = [acquire(a), acquire(a), acquire(a)];
      await settle();
      const waiting = [acquire(a), acquire(a), acquire(a)];
      await settle();
      const [place] = world.server.waiters('exports');
      const sent = a.store.commands.length;
      await holders[1]!.value.release();
      await settle();
      expect(states(waiting)).toEqual(['fulfilled', 'pending', 'pending']);
      expect(waiting[0]!.value.fencingToken).toBe(holders[1]!.value.fencingToken + 1);
      await holders[0]!.value.release();
      await settle();
      expect(states(waiting)).toEqual(['fulfilled', 'fulfilled', 'pending']);
      expect(a.store.commands).toHaveLength(sent);
      expect(world.server.waiters('exports')).toEqual([place]);
      await holders[2]!.value.release(); // nobody is left to take the place: the last one gets it there
      await settle();
      expect(states(waiting)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
      for (const { value } of waiting) await value.release();
      await expectNothingLeft();
    });

    it('passes nothing on with strictOrder: other processes get their turn', async () => {
      const order: string[] = [];
      const use = (instance: Instance, name: string) =>
        semaphore(instance).using({ count: 3, waitMs: Infinity, strictOrder: true }, () => void order.push(name));
      const first = await semaphore(a).acquire({ count: 3, strictOrder: true });
      const all = [use(a, 'a1'), use(a, 'a2'), use(a, 'a3'), use(a, 'a4')];
      await settle();
      all.push(use(b, 'b'));
      await settle();
      await first.release();
      await Promise.all(all);
      // The waiter's place preceded b's.
      expect(order).toEqual(['a1', 'b', 'a2', 'a3', 'a4']);
      await expectNothingLeft();
    });
  });

  describe('in a context that holds permits', () => {
    it('grants more if there are enough, each with its own token', async () => {
      await semaphore(a).using((outer) =>
        semaphore(a).using({ count: 2 }, (inner) => {
          expect(inner.fencingToken).not.toBe(outer.fencingToken);
        }),
      );
      await expectNothingLeft();
    });

    it('refuses a wait for itself at once', async () => {
      await semaphore(a).using({ count: 2 }, async () => {
        const sent = a.store.commands.length;
        await expect(semaphore(a).acquire({ count: 2 })).rejects.toThrow(LockReentryError);
        await expect(semaphore(a).acquire({ count: 2 })).rejects.toThrow('holds 2 of the 3 permits');
        await expect(semaphore(a).tryAcquire({ count: 2 })).rejects.toThrow(LockReentryError);
        expect(a.store.commands).toHaveLength(sent);
        await semaphore(a).using(async () => {
          await expect(semaphore(a).acquire()).rejects.toThrow('holds 3 of the 3 permits');
        });
      });
    });
  });

  describe('in conflict with another use', () => {
    it('reports it to calls that take it for a lock, and a lock for it', async () => {
      const permit = await semaphore(a).acquire();
      for (const { locks } of [a, b]) {
        await expect(locks.acquire('exports')).rejects.toMatchObject({
          code: 'LOCK_MODE_MISMATCH',
          message: expect.stringContaining('in use as a semaphore with 3 permits') as string,
        });
        await expect(locks.tryAcquire('exports')).rejects.toMatchObject({ code: 'LOCK_MODE_MISMATCH' });
      }
      await permit.release();
      const lock = await a.locks.acquire('exports', { mode: 'write' });
      for (const instance of [a, b]) {
        const message = '"exports" is locked (mode write), and this call uses it as a semaphore';
        await expect(semaphore(instance).acquire()).rejects.toThrow(message);
        await expect(semaphore(instance).available()).rejects.toThrow(message);
        await expect(semaphore(instance).resize(4)).rejects.toMatchObject({ code: 'LOCK_MODE_MISMATCH' });
      }
      expect(lock.isHeld()).toBe(true);
      await lock.release();
      await expectNothingLeft();
    });

    it('reports different totals, and how to change them', async () => {
      await semaphore(a, 3).acquire();
      await expect(semaphore(b, 5).acquire()).rejects.toThrow(
        '"exports" is in use as a semaphore with 3 permits, and this call sets 5. Use the same number everywhere, or ' +
          'call resize(5) on the semaphore.',
      );
    });
  });

  describe('with a new size', () => {
    it.each([0, 1.5, 1_000_001])('refuses %p permits', async (permits) => {
      await expect(semaphore(a).resize(permits)).rejects.toMatchObject({ option: 'permits' });
      expect(a.store.commands).toHaveLength(0);
    });
  });
});

describe('the input of a semaphore', () => {
  let a: Instance;

  beforeEach(() => {
    a = new LockWorld().instance('a');
  });
  afterEach(() => {
    // Whatever is refused is refused before anything is sent.
    expect(a.store.commands).toEqual([]);
  });

  it.each<[string, unknown, unknown, string, string]>([
    [
      'no options',
      'x',
      undefined,
      'permits is missing: pass the total number of permits of semaphore("x").',
      'permits',
    ],
    ['no number', 'x', {}, 'permits is missing', 'permits'],
    ['zero', 'x', { permits: 0 }, 'permits must be an integer from 1 to 1000000 (permits), not 0.', 'permits'],
    ['a fraction', 'x', { permits: 1.5 }, 'not 1.5.', 'permits'],
    ['NaN', 'x', { permits: NaN }, 'not NaN.', 'permits'],
    ['null', 'x', { permits: null }, 'not null.', 'permits'],
    ['too many', 'x', { permits: 1_000_001 }, 'not 1000001.', 'permits'],
    ['a text', 'x', { permits: '3' }, 'not "3".', 'permits'],
    ['a number alone', 'x', 3, 'semaphore("x") must be an object, not 3.', 'semaphore("x")'],
    ['a misspelt option', 'x', { permit: 3 }, 'semaphore("x") has no option "permit". Did you mean permits?', 'permit'],
    [
      'several names',
      ['a', 'b'],
      { permits: 3 },
      'an array of 2 is not a string. A resource is a non-empty string of at most 512 bytes.',
      'resource',
    ],
    [
      'an empty name',
      '',
      { permits: 3 },
      'The resource given to semaphore cannot be used: the name is empty.',
      'resource',
    ],
  ])('%s is refused', (_, resource, options, message, option) => {
    const make = () => a.locks.semaphore(resource as string, options as SemaphoreOptions);
    expect(make).toThrow(InvalidLockOptionsError);
    expect(make).toThrow(message);
    expect(make).toThrow(expect.objectContaining({ option }));
  });

  it.each<[string, unknown, string, string]>([
    ['a count of zero', { count: 0 }, 'count must be an integer from 1 to 1000000 (permits), not 0.', 'count'],
    ['a fraction', { count: 1.5 }, 'not 1.5.', 'count'],
    ['a text', { count: '2' }, 'not "2".', 'count'],
    ['more than there are', { count: 4 }, 'count is 4, but there are 3 permits: it could never be granted.', 'count'],
    ['a mode', { mode: 'read' }, 'permit options do not include "mode".', 'mode'],
    ['permits, which the semaphore has', { permits: 2 }, 'do not include "permits".', 'permits'],
    ['a misspelt option', { counts: 2 }, 'Did you mean count?', 'counts'],
    ['a number alone', 2, 'permit options must be an object, not 2.', 'permit options'],
    ['a lease too short', { leaseMs: 1 }, 'leaseMs must be an integer from 50', 'leaseMs'],
  ])('a call with %s is refused', async (_, options, message, option) => {
    const semaphore = a.locks.semaphore('x', { permits: 3 });
    const calls = [
      semaphore.acquire(options as PermitOptions),
      semaphore.tryAcquire(options as PermitOptions),
      semaphore.using(options as PermitOptions, () => {}),
    ];
    for (const call of calls) {
      const error = await rejection<InvalidLockOptionsError>(call);
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toContain(message);
      expect(error.option).toBe(option);
    }
  });

  it('work that is no function is refused before a permit is requested', async () => {
    const semaphore = a.locks.semaphore('x', { permits: 3 });
    for (const call of [semaphore.using({}, undefined as never), semaphore.using(undefined as never)]) {
      expect(await rejection(call)).toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'work' });
    }
  });

  it.each([0, 1.5, '4', undefined])('resize(%p) is refused', async (permits) => {
    const semaphore = a.locks.semaphore('x', { permits: 3 });
    expect(await rejection(semaphore.resize(permits as number))).toBeInstanceOf(InvalidLockOptionsError);
    expect(semaphore.permits).toBe(3);
  });
});

describe('the errors of a semaphore with conflicting uses', () => {
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    const world = new LockWorld();
    [a, b] = [world.instance('a'), world.instance('b')];
  });

  it('name both numbers, and the way out', async () => {
    await a.locks.semaphore('x', { permits: 3 }).acquire();
    const error = await rejection(b.locks.semaphore('x', { permits: 4 }).acquire());
    expect(error).toBeInstanceOf(LockModeMismatchError);
    expect(error.message).toBe(
      '"x" is in use as a semaphore with 3 permits, and this call sets 4. Use the same number everywhere, or call resize(4) on the semaphore.',
    );
  });

  it('report that the resource is locked, in any mode', async () => {
    for (const mode of ['exclusive', 'reentrant', 'read', 'write'] as const) {
      await using _lease = await a.locks.acquire('x', { mode });
      const semaphore = b.locks.semaphore('x', { permits: 4 });
      const message = `"x" is locked (mode ${mode}), and this call uses it as a semaphore. Give one of the two another name.`;
      for (const call of [semaphore.acquire(), semaphore.tryAcquire(), semaphore.available()]) {
        expect(await rejection(call)).toMatchObject({ code: 'LOCK_MODE_MISMATCH', message });
      }
      expect((await rejection(semaphore.resize(5))).message).toContain('and this call uses it as a semaphore');
      expect(semaphore.permits).toBe(4);
    }
  });

  it('report that a semaphore is too small for a request', async () => {
    const semaphore = a.locks.semaphore('x', { permits: 3 });
    await semaphore.acquire();
    await semaphore.resize(2);
    const error = await rejection(b.locks.semaphore('x', { permits: 3 }).acquire({ count: 3 }));
    expect(error.message).toBe(
      '"x" has 2 permits since it was resized, and this call wants 3 of them at once, which could never be granted. Ask for fewer, or resize the semaphore.',
    );
  });
});

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
        'This lease keeps all its permits until its minHoldMs (5000) has ended. Call releasePermits later, ' +
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
        message: `Only a semaphore lease has permits to release, not a lease in mode '${mode}'.`,
      });
    }
    expect(a.store.sent('lowerPermits')).toEqual([]);
  });
});
