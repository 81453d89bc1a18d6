import { LockReentryError } from '../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { PermitOptions } from '../../../lib/kernel/semaphore/semaphore-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { track, type Tracked } from '../../support/expect/tracked.js';

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
