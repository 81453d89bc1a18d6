import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { gate, track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { lostOnTheWay, repliedWhen, replyLost, type Verb } from '../../support/world/scripted-store.js';

const MIN = { minHoldMs: 5_000 };

describe('a lease with minHoldMs', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const wait = (options: LockOptions = {}, { locks } = b, resource = 'stock') =>
    track(locks.acquire(resource, { waitMs: Infinity, ...options }));
  /** The release commands of an instance. */
  const releases = ({ store }: Instance): Verb[] =>
    store.commands.map(({ verb }) => verb).filter((verb) => ['release', 'retain', 'rotate'].includes(verb));
  const isFree = () => world.server.members('stock').length === 0;

  it('is released at once, and the resource stays taken until the minimum has passed', async () => {
    const lease = await a.locks.acquire('stock', MIN);
    await world.clock.advance(1_000);
    await lease.release();
    expect(lease.isHeld()).toBe(false);
    expect(eventsOf(a, 'released')).toMatchObject([{ resource: 'stock', heldMs: 1_000 }]);
    // 1 % and 2 ms are the allowance for the drift of the clocks; the clock of the store decides.
    expect(a.store.sent('retain')).toMatchObject([{ retention: { minHoldMs: 5_000, leftMs: 4_053 } }]);
    await world.clock.advance(3_999);
    expect(isFree()).toBe(false);
    await world.clock.advance(1);
    expect(isFree()).toBe(true);
  });

  it('keeps nothing in the process: no timer, no lease', async () => {
    await (await a.locks.acquire('stock', MIN)).release();
    expect(a.locks.stats()).toEqual({ resources: 0, leases: 0, orphanReleases: 0, lateGrants: 0, alarms: 0 });
    await world.clock.advance(60_000);
    expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'retain']);
  });

  it('is renewed for as long as it is held, and freed at once after that', async () => {
    const lease = await a.locks.acquire('stock', { ...MIN, leaseMs: 1_000 });
    await world.clock.advance(6_000);
    expect(await lease.verify()).toBe(true);
    await lease.release();
    expect(releases(a)).toEqual(['release']);
    expect(isFree()).toBe(true);
  });

  describe('with waiters', () => {
    it.each([300, 4_700])('is granted to the first of them %i ms later, to the millisecond', async (minHoldMs) => {
      const lease = await a.locks.acquire('stock', { minHoldMs });
      const waiting = wait();
      const second = wait({}, world.instance('c'));
      await settle();
      await lease.release();
      await world.clock.advance(minHoldMs);
      expect(waiting.state).toBe('pending');
      await world.clock.advance(1);
      expect([waiting.state, second.state]).toEqual(['fulfilled', 'pending']);
    });

    it('accepts a message that arrives before the reply to the same command', async () => {
      const lease = await a.locks.acquire('stock', { minHoldMs: 300 });
      const answer = gate();
      b.store.next('acquire', repliedWhen(answer.opened));
      const waiting = wait();
      await settle();
      await lease.release();
      await world.clock.advance(100);
      answer.open();
      await world.clock.advance(201);
      expect(waiting.state).toBe('fulfilled');
    });
  });

  describe('inside one process', () => {
    it('is not passed on in memory: the next call waits in the store', async () => {
      const lease = await a.locks.acquire('stock', MIN);
      const next = wait({}, a);
      await settle();
      await lease.release();
      expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'acquire', 'retain']);
      await world.clock.advance(4_999);
      expect(next.state).toBe('pending');
      await world.clock.advance(2);
      expect(next.value?.fencingToken).toBeGreaterThan(lease.fencingToken + 31);
    });

    it('accepts no lease that could be passed on in memory, because it counts from a grant of the store', async () => {
      const lease = await a.locks.acquire('stock', { waitMs: 100 });
      const next = wait(MIN, a);
      await settle();
      await lease.release();
      await settle();
      expect(releases(a)).toEqual(['rotate']);
      expect(next.state).toBe('fulfilled');
    });
  });

  describe('with a second entry', () => {
    it('counts from the grant, and ends with the last release', async () => {
      await a.locks.using('stock', { ...MIN, mode: 'reentrant' }, async () => {
        await a.locks.using('stock', { mode: 'reentrant' }, async () => {});
        expect(releases(a)).toEqual([]);
        await world.clock.advance(2_000);
      });
      await world.clock.advance(2_999);
      expect(isFree()).toBe(false);
      await world.clock.advance(1);
      expect(isFree()).toBe(true);
    });
  });

  describe('whose release fails', () => {
    it.each<[string, Parameters<typeof a.store.next>[1]]>([
      ['is lost', lostOnTheWay],
      ['is not answered', replyLost],
    ])('is released again so that it is kept, if the first one %s', async (_, fate) => {
      const lease = await a.locks.acquire('stock', MIN);
      a.store.next('retain', fate);
      const released = track(lease.release());
      await world.clock.advance(2_000);
      expect(released.state).toBe('rejected');
      expect(releases(a)).toEqual(['retain', 'retain']);
      expect(a.store.sent('retain')[1]).toMatchObject({ retention: { minHoldMs: 5_000, leftMs: 4_053 } });
      await world.clock.advance(2_999);
      expect(isFree()).toBe(false);
      await world.clock.advance(1);
      expect(isFree()).toBe(true);
    });
  });

  it('is not kept if no caller got it: the call gave up, or another resource was busy', async () => {
    a.store.next('acquire', replyLost);
    const waiting = track(a.locks.acquire('stock', { ...MIN, waitMs: 100 }));
    await world.clock.advance(200);
    expect(waiting.state).toBe('rejected');
    expect(isFree()).toBe(true);

    await b.locks.acquire('there');
    await expect(a.locks.acquire(['stock', 'there'], { ...MIN, waitMs: 0 })).rejects.toThrow('there');
    expect(isFree()).toBe(true);
    expect(a.store.sent('retain')).toEqual([]);
  });

  it('is kept when the process shuts down, which does not wait for its end', async () => {
    const lease = await a.locks.acquire('stock', MIN);
    const closed = track(a.locks.shutdown(10_000));
    await settle();
    await lease.release();
    await settle();
    expect(closed.state).toBe('fulfilled');
    expect(isFree()).toBe(false);
  });

  it.each<[LockOptions, string]>([
    [{ minHoldMs: -1 }, 'minHoldMs must be an integer from 0 to 86400000 (milliseconds), not -1.'],
    [{ minHoldMs: 0.5 }, 'minHoldMs must be an integer from 0 to 86400000 (milliseconds), not 0.5.'],
    [
      { minHoldMs: 2_000, maxHoldMs: 1_000 },
      'minHoldMs must be at most maxHoldMs (1000), not 2000: the lease is lost after maxHoldMs, and the resource is ' +
        'free then. Raise maxHoldMs, or lower minHoldMs.',
    ],
    [
      { minHoldMs: 40_000, watchdog: false },
      'minHoldMs must be at most leaseMs (15000) where watchdog is false, not 40000: a fixed lease ends after ' +
        'leaseMs. Raise leaseMs, or lower minHoldMs.',
    ],
  ])('is refused if it cannot be kept: %j', async (options, message) => {
    await expect(a.locks.acquire('stock', options)).rejects.toThrow(new InvalidLockOptionsError(message, 'minHoldMs'));
    expect(a.store.commands).toEqual([]);
  });

  it('does not exist for a leadership', () => {
    expect(() => a.locks.campaign('leader', MIN as object)).toThrow('do not know the option "minHoldMs"');
  });
});
