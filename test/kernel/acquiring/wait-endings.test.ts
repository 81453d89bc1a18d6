import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { QuorumWorld } from '../../support/world/quorum-world.js';
import { answered, failing, lostOnTheWay } from '../../support/world/scripted-store.js';
import { track } from '../../support/expect/tracked.js';

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
        '"table" was not acquired: the call timed out (waitMs, 1 s) before Redis answered for it. Raise waitMs, or ' +
          'take fewer resources in one call.',
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
    it('the error reports that, and not that it was asked 0 times', async () => {
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
        /2 of 3 needed.*a not connected.*c not connected/,
      ],
      ['is the nodes, where two hang', [], [0, 2], 'LOCK_UNAVAILABLE', /2 of 3 needed.*a .*c /],
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
