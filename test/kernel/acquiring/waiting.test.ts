import { LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { ordinal } from '../../../lib/kernel/util/plurals.js';
import { gate, track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { QuorumWorld } from '../../support/world/quorum-world.js';
import {
  answered,
  failing,
  lostOnTheWay,
  repliedWhen,
  replyLost,
  type Verb,
} from '../../support/world/scripted-store.js';

describe('a waiter in the queue', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const wait = (options: LockOptions = {}, { locks } = b) =>
    track(locks.acquire('stock', { waitMs: Infinity, ...options }));

  /** The pauses between the commands of b. */
  function pauses(verb: Verb = 'acquire'): number[] {
    const times = b.store.sent(verb).map(({ sentAt }) => sentAt);
    return times.slice(1).map((time, index) => time - times[index]!);
  }

  it.each([30_000, 3_000, 300])(
    'keeps its place every third of its lease of %i ms, and asks nothing',
    async (leaseMs) => {
      await a.locks.acquire('stock', { leaseMs: 30_000 });
      const waiting = wait({ leaseMs });
      await world.clock.advance(5_001); // until it is told that the call waits for long
      const before = b.store.sent('keep').length;
      await world.clock.advance(4 * leaseMs);
      expect(waiting.state).toBe('pending');
      expect(b.store.sent('acquire')).toHaveLength(1);
      const kept = pauses('keep').slice(before);
      expect(kept.length).toBeGreaterThanOrEqual(7);
      expect(Math.min(...kept)).toBeGreaterThanOrEqual(leaseMs / 3);
      expect(Math.max(...kept)).toBeLessThanOrEqual((leaseMs / 3) * 1.25);
      expect(new Set(kept).size).toBeGreaterThan(5);
      expect(world.server.listWaiters('stock')).toEqual(['b']);
    },
  );

  it('asks again each time the lease of the holder should have ended', async () => {
    await a.locks.acquire('stock', { leaseMs: 60 });
    const waiting = wait();
    await world.clock.advance(10_000);
    expect(waiting.state).toBe('pending');
    // The lease is renewed at a third of its length.
    expect(Math.min(...pauses())).toBeGreaterThanOrEqual(41);
    expect(Math.max(...pauses())).toBeLessThanOrEqual(60 + 1.25);
    expect(world.server.listWaiters('stock')).toEqual(['b']);
  });

  it.each<[string, LockOptions, LockOptions, number, number]>([
    ['a second', {}, { leaseMs: 30_000 }, 1_000, 1_000],
    ['a third of the lease it wants, where that is less', {}, { leaseMs: 300 }, 100, 100],
    // Of a lease that is renewed at a third of its length.
    ['what is left to the holder and a millisecond, where that is less', { leaseMs: 60 }, {}, 41, 61],
  ])('of a store that does not keep places asks again after %s, and up to a quarter more', async (...row) => {
    const [, held, wanted, shortest, longest] = row;
    b.store.keepsNoPlaces();
    await a.locks.acquire('stock', held);
    const waiting = wait(wanted);
    await world.clock.advance(10_000);
    expect(waiting.state).toBe('pending');
    expect(Math.min(...pauses())).toBeGreaterThanOrEqual(shortest);
    expect(Math.max(...pauses())).toBeLessThanOrEqual(longest * 1.25);
    expect(new Set(pauses()).size).toBeGreaterThan(5);
    expect(world.server.listWaiters('stock')).toEqual(['b']);
  });

  it('keeps its place in every line at once, with one command, on a new connection', async () => {
    const names = ['one', 'two', 'three'];
    await Promise.all(names.map((name) => a.locks.acquire(name)));
    for (const name of names) track(b.locks.acquire(name));
    const held = await b.locks.acquire('held');
    track(b.locks.acquire('held'));
    await world.clock.advance(100);
    b.store.reconnect();
    await settle();
    const kept = b.store.commands.filter(({ sentAt }) => sentAt === world.clock.now());
    // Nothing has to be asked for the one held here.
    expect(kept.map(({ verb }) => verb)).toEqual(['keep']);
    expect(kept[0]!.resource.split(',').toSorted()).toEqual(names.toSorted());
    expect(held.isHeld()).toBe(true);
  });

  it('finds the grant whose message was lost with the connection in this way', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait();
    await settle();
    b.store.nextGrants(() => {});
    await holder.release();
    await settle();
    expect(waiting.state).toBe('pending');
    b.store.reconnect();
    await settle();
    expect(waiting.value.isHeld()).toBe(true);
  });

  it('follows the reply to its last command; a late reply to an earlier one changes no pause', async () => {
    b.store.keepsNoPlaces();
    await a.locks.acquire('stock');
    const late = gate();
    b.store.next('acquire', repliedWhen(late.opened));
    wait({ attemptTimeoutMs: 100 });
    await world.clock.advance(130);
    expect(b.store.sent('acquire')).toHaveLength(2);
    late.open();
    await world.clock.advance(990);
    expect(b.store.sent('acquire')).toHaveLength(2);
    await world.clock.advance(300);
    expect(b.store.sent('acquire')).toHaveLength(3);
  });

  it('pauses longer after each failure, up to half a second', async () => {
    b.store.fates.acquire = failing('notExecuted');
    wait();
    await world.clock.advance(10_000);
    const expected = [20, 40, 80, 160, 320, 500, 500, 500];
    for (const [index, shortest] of expected.entries()) {
      expect(pauses()[index]).toBeGreaterThanOrEqual(shortest);
      expect(pauses()[index]).toBeLessThanOrEqual(shortest * 1.25);
    }
  });

  describe.each([1, 3])('without a reply, with %i calls in line,', (count) => {
    const line = (options: LockOptions) => Array.from({ length: count }, () => wait({ waitMs: 700, ...options }));

    it.each<[string, () => void, object]>([
      ['times out', () => (b.store.fates.acquire = lostOnTheWay), { lastAttempt: 'timeout' }],
      ['loses the replies', () => (b.store.fates.acquire = replyLost), { lastAttempt: 'timeout' }],
      ['cannot send', () => (b.store.fates.acquire = failing('notExecuted', 'offline')), { lastAttempt: 'failed' }],
      ['does not know', () => (b.store.fates.acquire = failing('unknown', 'reset')), { lastAttempt: 'failed' }],
    ])('%s: all get an unavailable error at their waitMs', async (_, break_, error) => {
      break_();
      const calls = line({ attemptTimeoutMs: 200 });
      await world.clock.advance(699);
      expect(calls.map(({ state }) => state)).toEqual(Array(count).fill('pending'));
      await world.clock.advance(1);
      for (const call of calls) expect(call.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', ...error });
      b.store.fates.acquire = answered;
      await world.clock.advance(40_000);
      expect(world.server.isEmpty).toBe(true);
      expect(world.clock.timers).toBe(0);
    });

    it('is refused: each call is rejected at once, one after another', async () => {
      b.store.fates.acquire = failing('refused', 'NOPERM');
      const calls = line({});
      await settle();
      for (const call of calls) expect(call.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'failed' });
      expect(b.store.sent('acquire')).toHaveLength(count);
      expect(b.store.sent('release')).toEqual([]);
    });
  });

  it('times out as busy in the middle of a command, and not as unknown', async () => {
    await a.locks.acquire('stock');
    const options = { waitMs: 1_300, attemptTimeoutMs: 1_100 };
    const [first, second] = [wait(options), wait(options)];
    await settle();
    b.store.all(lostOnTheWay);
    await world.clock.advance(1_300);
    for (const { error } of [first, second]) expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', lastAttempt: 'busy' });
  });

  it('reports to those behind a holder of this process how long that may take', async () => {
    await b.locks.acquire('stock', { leaseMs: 3_000 });
    const waiting = wait({ waitMs: 500 });
    await world.clock.advance(500);
    expect(waiting.error).toMatchObject({
      code: 'LOCK_TIMEOUT',
      attempts: 0,
      lastAttempt: 'busy',
      retryAfterMs: 3_000 - 32 - 500,
    });
    expect(b.store.commands).toHaveLength(1);
  });
});

describe('the place in line', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let c: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b, c] = [world.instance('a'), world.instance('b'), world.instance('c')];
  });

  it('is in the event of a call that begins to wait, and in its error', async () => {
    await a.locks.acquire('stock');
    const first = track(b.locks.acquire('stock', { waitMs: 500 }));
    await world.clock.advance(1);
    const second = track(c.locks.acquire('stock', { waitMs: 400 }));
    await world.clock.advance(500);
    expect(eventsOf(b, 'waiting')).toMatchObject([{ place: 1 }]);
    expect(eventsOf(c, 'waiting')).toMatchObject([{ place: 2 }]);
    expect(first.error).toMatchObject({ code: 'LOCK_TIMEOUT', place: 1 });
    expect(second.error).toMatchObject({ code: 'LOCK_TIMEOUT', place: 2 });
    expect((second.error as Error).message).toMatch(/; waited 400 ms \(2nd in line(, \d attempts)?\)\. Raise waitMs/);
  });

  it('comes from the last reply that had one', async () => {
    await a.locks.acquire('stock');
    const first = track(b.locks.acquire('stock', { waitMs: 500 }));
    await world.clock.advance(1);
    const second = track(c.locks.acquire('stock', { waitMs: 6_000 }));
    await world.clock.advance(6_000);
    expect(first.error).toMatchObject({ place: 1 });
    expect(eventsOf(c, 'waiting')).toMatchObject([{ place: 2 }]);
    expect(eventsOf(c, 'waitingLong')).toMatchObject([{ place: 1 }]);
    expect(second.error).toMatchObject({ place: 1 });
  });

  it('is not announced for calls behind it, until one of them is there', async () => {
    await a.locks.acquire('stock');
    void track(b.locks.acquire('stock', { waitMs: 60_000 }));
    await world.clock.advance(1);
    const first = track(c.locks.acquire('stock', { waitMs: 1_000 }));
    const second = track(c.locks.acquire('stock', { waitMs: 500 }));
    const third = track(c.locks.acquire('stock', { waitMs: 3_000 }));
    await world.clock.advance(3_000);
    expect(second.error).not.toHaveProperty('place');
    expect((second.error as Error).message).not.toContain('in line');
    expect(first.error).toMatchObject({ place: 2 });
    expect(third.error).toMatchObject({ place: 2 });
    const told = eventsOf(c, 'waiting').map((event) => ('place' in event ? event.place : 'none'));
    expect(told).toEqual(expect.arrayContaining([2, 'none', 'none']));
  });

  it('is unknown behind a holder of this process, and for a call that polls', async () => {
    await a.locks.acquire('stock');
    const behind = track(a.locks.acquire('stock', { waitMs: 300 }));
    const polling = track(b.locks.acquire('stock', { waitMs: 300, retry: fixedInterval({ intervalMs: 100 }) }));
    await world.clock.advance(400);
    for (const { error } of [behind, polling]) {
      expect(error).toBeInstanceOf(LockTimeoutError);
      expect(error).not.toHaveProperty('place');
    }
    for (const event of [...eventsOf(a, 'waiting'), ...eventsOf(b, 'waiting')])
      expect(event).not.toHaveProperty('place');
  });

  it.each([
    [1, '1st'],
    [2, '2nd'],
    [3, '3rd'],
    [4, '4th'],
    [10, '10th'],
    [11, '11th'],
    [12, '12th'],
    [13, '13th'],
    [20, '20th'],
    [21, '21st'],
    [101, '101st'],
    [111, '111th'],
    [112, '112th'],
    [122, '122nd'],
    [1_003, '1003rd'],
    [1_013, '1013th'],
  ])('%d is called %s', (place, name) => {
    expect(ordinal(place)).toBe(name);
  });
});

describe('waiting in the queue', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('costs one command: the grant arrives as a message', async () => {
    const lease = await a.locks.acquire('stock');
    const waiting = track(b.locks.acquire('stock'));
    await world.clock.advance(500);
    await lease.release();
    await settle();
    expect(waiting.state).toBe('fulfilled');
    expect(b.store.commands.map(({ verb }) => verb)).toEqual(['acquire']);
  });

  it('accepts a grant that arrives before the reply of the command that queued it', async () => {
    const lease = await a.locks.acquire('stock');
    const reply = gate();
    b.store.next('acquire', repliedWhen(reply.opened));
    const waiting = track(b.locks.acquire('stock'));
    await settle();
    await lease.release(); // b is granted while its "queued" is still on the way
    await settle();
    expect(waiting.state).toBe('fulfilled');
    reply.open();
    await settle();
    expect(b.store.commands).toHaveLength(1);
    expect(await waiting.value.verify()).toBe(true);
  });

  it('is skipped when the waiter has given up', async () => {
    const c = world.instance('c');
    const lease = await a.locks.acquire('stock');
    const controller = new AbortController();
    const first = track(b.locks.acquire('stock', { signal: controller.signal }));
    await settle();
    const second = track(c.locks.acquire('stock'));
    await settle();
    controller.abort();
    await lease.release();
    await settle();
    expect(first.state).toBe('rejected');
    expect(second.state).toBe('fulfilled');
  });

  it('passes on a grant that arrives together with the abort', async () => {
    const c = world.instance('c');
    const lease = await a.locks.acquire('stock');
    const controller = new AbortController();
    const first = track(b.locks.acquire('stock', { signal: controller.signal }));
    await settle();
    const second = track(c.locks.acquire('stock'));
    await settle();
    const releasing = lease.release();
    controller.abort();
    await releasing;
    await settle();
    expect(first.state).toBe('rejected');
    expect(second.state).toBe('fulfilled');
  });

  it('separates processes that have the same name by mistake', async () => {
    const [first, second, third] = [1, 2, 3].map(() => world.instance('same')) as [Instance, Instance, Instance];
    const lease = await first.locks.acquire('stock');
    const waiting = [second, third].map(({ locks }) => track(locks.acquire('stock')));
    await settle();
    await lease.release();
    await settle();
    expect(waiting.map(({ state }) => state)).toEqual(['fulfilled', 'pending']);
    expect(await waiting[0]!.value.verify()).toBe(true);
  });
});

describe('a call that waits for long', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  const waits = (instance: Instance) => eventsOf(instance, 'waitingLong');

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('is reported once, after 5 s, with the holders and without a command of its own', async () => {
    const { fencingToken } = await a.locks.acquire('stock');
    const waiting = track(b.locks.acquire('stock', { waitMs: 60_000 }));
    await world.clock.advance(4_900);
    expect(waits(b)).toEqual([]);
    const asked = b.store.commands.length;
    await world.clock.advance(1_300);
    expect(waits(b)).toMatchObject([
      {
        resource: 'stock',
        mode: 'exclusive',
        holders: [{ instanceId: 'a', isThisProcess: false, fencingToken }],
        holderCount: 1,
      },
    ]);
    const [{ waitedMs, holders }] = waits(b) as [ReturnType<typeof waits>[0]];
    // Reported with a heartbeat.
    expect(waitedMs).toBeGreaterThanOrEqual(5_000);
    expect(waitedMs).toBeLessThan(6_200);
    expect(holders[0]!.heldMs).toBeCloseTo(waitedMs, -1);
    expect(b.store.commands.length - asked).toBeLessThanOrEqual(2);
    await world.clock.advance(50_000);
    expect(waits(b)).toHaveLength(1);
    expect(waiting.state).toBe('pending');
    await world.clock.advance(5_000);
    expect(waiting.error).toMatchObject({ code: 'LOCK_TIMEOUT' });
  });

  it('is reported at 5 s behind others of its process, and still ends in time', async () => {
    await a.locks.acquire('stock');
    const calls = [7_000, 6_000].map((waitMs) => track(a.locks.acquire('stock', { waitMs })));
    await world.clock.advance(4_999);
    expect(waits(a)).toEqual([]);
    await world.clock.advance(1);
    expect(waits(a)).toMatchObject(
      calls.map(() => ({ waitedMs: 5_000, holders: [{ instanceId: 'a', isThisProcess: true, heldMs: 5_000 }] })),
    );
    await world.clock.advance(999);
    expect(calls.map(({ state }) => state)).toEqual(['pending', 'pending']);
    await world.clock.advance(1);
    expect(calls.map(({ state }) => state)).toEqual(['pending', 'rejected']);
    await world.clock.advance(1_000);
    expect(calls.map(({ state }) => state)).toEqual(['rejected', 'rejected']);
    expect(waits(a)).toHaveLength(2);
  });

  it('is not reported if it ends before', async () => {
    await a.locks.acquire('stock');
    const calls = [b, b, a].map(({ locks }) => track(locks.acquire('stock', { waitMs: 4_999 })));
    await world.clock.advance(30_000);
    expect(calls.map(({ state }) => state)).toEqual(['rejected', 'rejected', 'rejected']);
    expect([...waits(a), ...waits(b)]).toEqual([]);
  });

  it('is not reported for a candidate of a leadership, nor counted', async () => {
    a.locks.campaign('reports');
    b.locks.campaign('reports');
    await a.locks.acquire('stock');
    void b.locks.acquire('stock', { waitMs: 60_000 }).catch(() => {});
    await world.clock.advance(30_000);
    expect(waits(b)).toMatchObject([{ resource: 'stock' }]);
    expect([a.locks.countWaiting(), b.locks.countWaiting()]).toEqual([0, 1]);
  });

  it('is not reported while Redis is unreachable, which is the cause of the wait', async () => {
    await a.locks.acquire('stock');
    b.store.fates.acquire = failing('notExecuted');
    const calls = [1, 2].map(() => track(b.locks.acquire('stock', { waitMs: 30_000 })));
    await world.clock.advance(20_000);
    expect(calls.map(({ state }) => state)).toEqual(['pending', 'pending']);
    expect(waits(b)).toEqual([]);
  });

  it('counts all calls that wait, in the queue and by polling', async () => {
    await a.locks.acquire('stock');
    await a.locks.acquire('other');
    for (let i = 0; i < 3; i++) void b.locks.acquire('stock').catch(() => {});
    void b.locks.acquire('other').catch(() => {});
    void b.locks.acquire('other', { retry: fixedInterval({ intervalMs: 100 }) }).catch(() => {});
    await world.clock.advance(150);
    expect(b.locks.countWaiting()).toBe(5);
    await world.clock.advance(20_000);
    expect(b.locks.countWaiting()).toBe(0);
  });
});

const DOWN = 'not connected to Redis (connect ECONNREFUSED)';
const closed = () => new LockStoreError('notExecuted', DOWN);

describe('the cause of a timeout', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const wait = (options: LockOptions = {}) => track(b.locks.acquire('stock', options));
  const codes = (calls: { error: unknown }[]) => calls.map(({ error }) => (error as { code: string }).code);

  /** Redis dies: commands fail, and the connection reports it before the next one. */
  const die = ({ store } = b) => {
    store.all(failing('notExecuted', DOWN));
    store.trouble = closed;
  };
  const comeBack = ({ store } = b) => {
    store.all(answered);
    store.trouble = () => undefined;
    store.reconnect();
  };

  describe('is the holder, if Redis was available all the time:', () => {
    it('for calls of several modes, each of which asks for itself in the last moment of another', async () => {
      await a.locks.acquire('stock');
      const calls = [wait({ waitMs: 400 }), wait({ mode: 'read', waitMs: 600 }), wait({ waitMs: 400 })];
      await world.clock.advance(600);
      expect(codes(calls)).toEqual(['LOCK_TIMEOUT', 'LOCK_TIMEOUT', 'LOCK_TIMEOUT']);
    });

    it.each(['read', 'write'] as const)('for a call whose turn to ask (%s) comes as its time ends', async (mode) => {
      await a.locks.acquire('stock');
      const first = wait({ waitMs: 400 });
      const last = wait({ mode, waitMs: 401 });
      await world.clock.advance(399);
      b.store.fates.acquire = lostOnTheWay; // on its way for longer than a millisecond
      await world.clock.advance(2);
      expect(codes([first, last])).toEqual(['LOCK_TIMEOUT', 'LOCK_TIMEOUT']);
    });

    it('for one of several resources that was acquired in the last moment, too late for the next one', async () => {
      const held = await a.locks.acquire('chair');
      const both = track(b.locks.acquire(['chair', 'table'], { waitMs: 1_000 }));
      await world.clock.advance(999);
      b.store.nextFor('table', lostOnTheWay);
      await held.release();
      await world.clock.advance(1_000);
      expect(both.error).toMatchObject({ code: 'LOCK_TIMEOUT', resource: 'table', waitedMs: 1_000, holders: [] });
      expect((both.error as Error).message).toBe(
        '"table" was not acquired: the time of this call (waitMs, 1 s) was over before Redis answered for this resource. ' +
          'Raise waitMs, or acquire fewer resources in one call.',
      );
    });

    it('but the message blames no other resource for a short waitMs that it did not use up', async () => {
      const held = await a.locks.acquire('chair');
      const both = track(b.locks.acquire(['chair', 'table'], { waitMs: 500 }));
      await world.clock.advance(10);
      b.store.nextFor('table', lostOnTheWay);
      await held.release();
      await world.clock.advance(600);
      expect((both.error as Error).message).toMatch(
        /^"table" was not acquired: the time of this call \(waitMs, 500 ms\)/,
      );
    });

    it('even if Redis was down for a while, and recovered in time to answer', async () => {
      await a.locks.acquire('stock');
      const waiting = wait({ waitMs: 5_000 });
      await world.clock.advance(1_000);
      die();
      await world.clock.advance(3_990);
      comeBack();
      await world.clock.advance(10);
      expect(waiting.error).toMatchObject({ code: 'LOCK_TIMEOUT', lastAttempt: 'busy' });
    });
  });

  describe('is Redis, which had answered before and', () => {
    const held = () => a.locks.acquire('stock', { leaseMs: 60_000 });

    it.each([1, 3])('dies while %i calls wait in line', async (count) => {
      await held();
      const calls = Array.from({ length: count }, () => wait({ waitMs: 5_000 }));
      await world.clock.advance(2_000);
      b.store.all(failing('notExecuted', DOWN));
      await world.clock.advance(3_000);
      for (const { error } of calls) {
        expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'failed', cause: { message: DOWN } });
      }
    });

    it('dies a moment before the end, and the connection knows, without a command since', async () => {
      await held();
      const calls = [wait({ waitMs: 900 }), wait({ waitMs: 900, mode: 'read' })];
      await world.clock.advance(600);
      die();
      await world.clock.advance(299);
      expect(b.store.sent('acquire')).toHaveLength(1);
      await world.clock.advance(1);
      for (const { error } of calls)
        expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', cause: { message: DOWN } });
    });

    it('hangs: reported once an attempt had its full time, and not before', async () => {
      await held();
      const times = [1_900, 2_300];
      const calls = times.map((waitMs) => wait({ waitMs }));
      await world.clock.advance(1_000); // the holders were asked for at 900
      b.store.all(lostOnTheWay);
      b.store.hearing!.silentSince = world.clock.now();
      await world.clock.advance(1_300);
      expect(codes(calls)).toEqual(['LOCK_TIMEOUT', 'LOCK_UNAVAILABLE']);
      expect(calls[1]!.error).toMatchObject({
        lastAttempt: 'timeout',
        cause: { message: expect.stringMatching(/^no answer within 1\d\d\d ms$/) },
      });
    });

    it('hangs, which a probe shows if nothing else was sent', async () => {
      await held();
      const attemptTimeoutMs = 500;
      const calls = [600, 900].map((waitMs) => wait({ waitMs, attemptTimeoutMs }));
      await world.clock.advance(300);
      b.store.hearing!.silentSince = world.clock.now();
      await world.clock.advance(600);
      expect(codes(calls)).toEqual(['LOCK_TIMEOUT', 'LOCK_UNAVAILABLE']);
      expect(calls[1]!.error).toMatchObject({ lastAttempt: 'timeout', cause: { message: 'no answer within 600 ms' } });
      expect(b.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'release']);
    });

    it('answers this call, though a probe has no reply: another server may hang', async () => {
      await held();
      b.store.hearing!.silentSince = world.clock.now();
      await world.clock.advance(60_000);
      const waiting = wait({ waitMs: 900, attemptTimeoutMs: 1_000 });
      await world.clock.advance(900);
      expect(codes([waiting])).toEqual(['LOCK_TIMEOUT']);
    });

    it('hangs, which no probe shows because the other servers of the cluster answer', async () => {
      await held();
      const waiting = wait({ waitMs: 4_900, attemptTimeoutMs: 2_000 });
      await world.clock.advance(1_000);
      b.store.all(lostOnTheWay);
      await world.clock.advance(3_900);
      expect(codes([waiting])).toEqual(['LOCK_UNAVAILABLE']);
    });

    it('hangs, so that a holder of this process has lost its lease', async () => {
      await b.locks.acquire('stock', { leaseMs: 900 });
      const waiting = wait({ waitMs: 1_000 });
      await settle();
      b.store.all(lostOnTheWay);
      await world.clock.advance(1_000);
      expect(waiting.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'timeout' });
    });
  });

  describe('is unknown, if Redis has never answered:', () => {
    it('the error reports that, and not 0 attempts', async () => {
      b.store.fates.acquire = lostOnTheWay;
      const calls = [wait({ waitMs: 5 }), wait({ waitMs: 5 })];
      await world.clock.advance(5);
      for (const { error } of calls) {
        expect((error as Error).message).toBe('Redis could not acquire "stock": no answer within 5 ms');
      }
    });
  });

  describe('with a quorum of three', () => {
    it.each([
      ['is the holder, while a majority answers: one is down', [0], [], 'LOCK_TIMEOUT', undefined],
      [
        'is the nodes, where two are down',
        [0, 2],
        [],
        'LOCK_UNAVAILABLE',
        /2 of 3 nodes needed.*a not connected.*c not connected/,
      ],
      ['is the nodes, where two hang', [], [0, 2], 'LOCK_UNAVAILABLE', /2 of 3 nodes needed.*a .*c /],
    ])('%s', async (_, down, stopped, code, message = /./) => {
      const quorum = new QuorumWorld();
      await quorum.until(quorum.client().locks.acquire('stock', { leaseMs: 60_000 }));
      const { locks } = quorum.client();
      const calls = [900, 3_000].map((waitMs) => track(locks.acquire('stock', { waitMs })));
      await quorum.clock.advance(600);
      quorum.down(...down);
      quorum.stop(...stopped);
      await quorum.clock.advance(2_400);
      const [first, second] = calls.map(({ error }) => error as Error);
      if (stopped.length === 0) expect(first).toMatchObject({ code, message: expect.stringMatching(message) });
      expect(second).toMatchObject({ code, message: expect.stringMatching(message) });
    });
  });
});
