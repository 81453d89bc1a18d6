import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { LOCK_DEFAULTS, type LockOptions, resolveLockOptions } from '../../../lib/kernel/api/lock-options.js';
import { StoreLease } from '../../../lib/kernel/holding/store-lease.js';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import { LockStoreError, type StoreFailure } from '../../../lib/kernel/store/store-error.js';
import { Deferred } from '../../../lib/kernel/util/promises.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { rejection } from '../../support/expect/eventually.js';
import { gate, track } from '../../support/expect/tracked.js';
import { FakeClock, settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { lostOnTheWay, repliedWhen, replyLost, type Verb } from '../../support/world/scripted-store.js';

const LEASE_MS = 3_000;
const DRIFT_MS = 32;

describe('a store lease', () => {
  let clock: FakeClock;
  let begin: number;

  beforeEach(() => {
    clock = new FakeClock();
    begin = clock.now();
  });

  const terms = (options: LockOptions = {}) => resolveLockOptions({ leaseMs: LEASE_MS, ...options }, LOCK_DEFAULTS);

  function start(options: LockOptions = {}, sentAt = begin): StoreLease {
    return new StoreLease({ resource: 'stock', id: 'a/1', mode: 'exclusive' }, 64, sentAt, terms(options), clock);
  }

  /** The end of the lease, relative to its beginning. */
  const deadlineOf = ({ deadline }: StoreLease) => deadline - begin;

  it('ends one lease after its command was sent, less the drift', () => {
    expect(deadlineOf(start())).toBe(LEASE_MS - DRIFT_MS);
    expect(deadlineOf(start({}, begin - 500))).toBe(LEASE_MS - DRIFT_MS - 500);
    expect(start({}, begin - 500).nextRenewalAt).toBe(begin - 500 + LEASE_MS / 3);
  });

  describe('with renewals', () => {
    /** A renewal that is under way: what it is answered with is up to the test. */
    function sent(storeLease: StoreLease, atMs: number, leaseMs = LEASE_MS, exactly = false) {
      const reply = new Deferred<boolean>();
      const done = storeLease.renewBy(leaseMs, () => reply.promise, exactly, begin + atMs).catch(() => false);
      return {
        confirm: () => {
          reply.resolve(true);
          return done;
        },
        fail: (failure: StoreFailure) => {
          reply.reject(new LockStoreError(failure, 'a test'));
          return done;
        },
      };
    }

    it('is extended when a renewal is confirmed, and then from when that was sent', async () => {
      const storeLease = start();
      const renewal = sent(storeLease, 1_000);
      expect(deadlineOf(storeLease)).toBe(LEASE_MS - DRIFT_MS);
      clock.block(2_000);
      await renewal.confirm();
      expect(deadlineOf(storeLease)).toBe(1_000 + LEASE_MS - DRIFT_MS);
    });

    it('is trusted for no longer than the shortest renewal that may be executed', async () => {
      const storeLease = start();
      const short = sent(storeLease, 100, 500);
      expect(deadlineOf(storeLease)).toBe(100 + 500 - 7);
      await short.confirm();
      expect(deadlineOf(storeLease)).toBe(593);
      await sent(storeLease, 200).confirm();
      expect(deadlineOf(storeLease)).toBe(200 + LEASE_MS - DRIFT_MS);
    });

    it('gets its old deadline back if a short renewal was certainly not executed', async () => {
      const storeLease = start();
      const short = sent(storeLease, 100, 500);
      await short.fail('notExecuted');
      expect(deadlineOf(storeLease)).toBe(LEASE_MS - DRIFT_MS);
    });

    it('counts every unanswered renewal: dismissing one forgets no other', async () => {
      const storeLease = start();
      const [first, second] = [sent(storeLease, 100, 500), sent(storeLease, 150, 400)];
      expect(deadlineOf(storeLease)).toBe(150 + 400 - 6);
      await second.fail('notExecuted');
      expect(deadlineOf(storeLease)).toBe(593);
      await first.fail('notExecuted');
      expect(deadlineOf(storeLease)).toBe(LEASE_MS - DRIFT_MS);
    });

    it('counts the renewals that were sent after the confirmed one', async () => {
      const storeLease = start();
      const first = sent(storeLease, 1_000);
      sent(storeLease, 1_100, 500);
      await first.confirm();
      expect(deadlineOf(storeLease)).toBe(1_100 + 500 - 7);
    });

    it('is not shortened by an older confirmation that arrives after a newer one', async () => {
      const storeLease = start();
      const [first, second] = [sent(storeLease, 1_000), sent(storeLease, 2_000)];
      clock.block(2_100);
      await second.confirm();
      await first.confirm();
      expect(deadlineOf(storeLease)).toBe(2_000 + LEASE_MS - DRIFT_MS);
    });

    it('allows for a pending renewal that cuts it, even after a later one was confirmed', async () => {
      const storeLease = start();
      const cut = sent(storeLease, 100, 500, true);
      await sent(storeLease, 200).confirm();
      expect(deadlineOf(storeLease)).toBe(100 + 500 - 7); // it may still be executed: a script may be sent anew
      await cut.fail('unknown');
      await sent(storeLease, 300).confirm();
      expect(deadlineOf(storeLease)).toBe(300 + 500 - 7); // it may still come, on a connection that was thought dead
      expect(storeLease.leaseMs).toBe(500);
    });

    it('uses the shorter of two renewals whose replies were reordered, because the last one executed is unknown', async () => {
      const storeLease = start();
      const long = sent(storeLease, 0, 10_000, true);
      const short = sent(storeLease, 0, 2_000, true);
      await short.confirm();
      await long.confirm();
      expect(deadlineOf(storeLease)).toBe(2_000 - 22);
      await sent(storeLease, 100).confirm();
      expect(deadlineOf(storeLease)).toBe(100 + LEASE_MS - DRIFT_MS);
    });

    it('returns the reply when the deadline has moved, and the failure as a store error', async () => {
      const storeLease = start();
      const renewed = storeLease.renewBy(LEASE_MS, async () => true, false, begin + 100);
      expect(await renewed.then((reply) => [reply, deadlineOf(storeLease)])).toEqual([true, 100 + LEASE_MS - DRIFT_MS]);
      await expect(storeLease.renewBy(LEASE_MS, async () => false)).resolves.toBe(false);
      const failed = storeLease.renewBy(LEASE_MS, () => Promise.reject(new Error('odd')));
      await expect(failed).rejects.toMatchObject({ name: 'LockStoreError', failure: 'unknown', message: 'odd' });
      expect(storeLease.isUnconfirmed).toBe(true);
    });

    it.each([
      ['in the very moment', 0],
      ['after', 1],
    ])('is not revived by a confirmation %s it ended', async (_, lateMs) => {
      const storeLease = start();
      const renewal = sent(storeLease, 1_000);
      clock.block(LEASE_MS - DRIFT_MS + lateMs);
      await renewal.confirm();
      expect(deadlineOf(storeLease)).toBe(LEASE_MS - DRIFT_MS);
    });

    it('is not revived either after a shorter one had ended it', async () => {
      const storeLease = start();
      const [short, long] = [sent(storeLease, 100, 200), sent(storeLease, 150)];
      clock.block(300);
      await long.confirm();
      await short.confirm();
      expect(deadlineOf(storeLease)).toBe(100 + 200 - 4);
    });
  });

  describe('is passed on', () => {
    it('with the next token each time', () => {
      const storeLease = start();
      expect(storeLease.fencingToken).toBe(64);
      storeLease.mintToken();
      expect(storeLease.fencingToken).toBe(65);
      storeLease.mintToken();
      expect(storeLease.fencingToken).toBe(66);
    });

    it('63 times, and never out of its tick', () => {
      const storeLease = start();
      for (let i = 0; i < 63; i++, storeLease.mintToken()) expect(storeLease.mayHandOverTo(terms())).toBe(true);
      expect(storeLease.mayHandOverTo(terms())).toBe(false);
      expect(storeLease.fencingToken).toBe(64 + 63);
    });

    it('not once it has ended, even if it is younger than 10 ms', () => {
      const storeLease = start({}, begin - (LEASE_MS - DRIFT_MS) + 5);
      clock.block(4);
      expect(storeLease.mayHandOverTo(terms())).toBe(true);
      clock.block(1);
      expect(storeLease.mayHandOverTo(terms())).toBe(false);
    });

    it('within 10 ms of its beginning, which is when it was granted', () => {
      const storeLease = start({}, begin - 500);
      clock.block(9);
      expect(storeLease.mayHandOverTo(terms())).toBe(true);
      expect(storeLease.mayHandOverTo(terms({ strictOrder: true }))).toBe(false);
      clock.block(1);
      expect(storeLease.mayHandOverTo(terms())).toBe(false);
    });

    it('not while its length differs from the first one', () => {
      const storeLease = start();
      storeLease.leaseMs = 5_000;
      expect(storeLease.mayHandOverTo(terms())).toBe(false);
      expect(storeLease.mayHandOverTo(terms({ leaseMs: 5_000 }))).toBe(true);
    });
  });
});

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
      expect(next.value?.fencingToken).toBeGreaterThan(lease.fencingToken + 63);
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
      'minHoldMs must be at most leaseMs (15000) with watchdog: false, not 40000: a fixed lease ends after ' +
        'leaseMs. Raise leaseMs, or lower minHoldMs.',
    ],
  ])('is refused if it cannot be kept: %j', async (options, message) => {
    await expect(a.locks.acquire('stock', options)).rejects.toThrow(new InvalidLockOptionsError(message, 'minHoldMs'));
    expect(a.store.commands).toEqual([]);
  });

  it('does not exist for a leadership', () => {
    expect(() => a.locks.campaign('leader', MIN as object)).toThrow('do not include "minHoldMs"');
  });
});

describe('a Redis that has lost its locks and grants them again after 1 s', () => {
  const store = () => new MemoryLockStore({ instanceId: 'one' });
  const locks = new LockClient({ store: store(), defaults: { leaseMs: 1_000, restartQuarantineMs: 1_000 } });
  const expectRefused = async (call: () => unknown) => {
    const error = await rejection<InvalidLockOptionsError>((async () => call())());
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.option).toBe('leaseMs');
    expect(error.message).toMatch(/^leaseMs must be at most restartQuarantineMs \(1000\), not 1001: .*Raise restart/);
  };
  afterAll(() => locks.shutdown(0));

  it.each([
    ['acquire', () => locks.acquire('a', { leaseMs: 1_001 })],
    ['tryAcquire', () => locks.tryAcquire('a', { leaseMs: 1_001 })],
    ['using', () => locks.using('a', { leaseMs: 1_001 }, () => undefined)],
    ['a permit', () => locks.semaphore('s', { permits: 1 }).acquire({ leaseMs: 1_001 })],
    ['a campaign', () => locks.campaign('a', { leaseMs: 1_001 })],
  ])('allows no longer lease: %s', async (_, call) => {
    await expectRefused(call);
  });

  it('allows no extension beyond that', async () => {
    const lease = await locks.acquire('a');
    await expectRefused(() => lease.extend(1_001));
    expect(lease.isHeld()).toBe(true);
    await lease.extend(1_000);
    await lease.release();

    const both = await locks.acquire(['a', 'b']);
    await expectRefused(() => both.extend(1_001));
    await both.release();
  });
});
