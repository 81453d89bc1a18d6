import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import {
  answered,
  failing,
  lostOnTheWay,
  repliedWhen,
  replyLost,
  type Verb,
} from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

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
