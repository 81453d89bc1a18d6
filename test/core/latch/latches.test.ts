import { getEventListeners } from 'node:events';
import {
  LockAbortedError,
  LockModeMismatchError,
  LockShutdownError,
  LockTimeoutError,
  LockUnavailableError,
} from '../../../lib/core/api/errors.js';
import { settle } from '../../support/world/fake-clock.js';
import { type LatchInstance, LatchWorld } from '../../support/world/latch-world.js';
import {
  brokenAfter,
  executedWhen,
  failing,
  lostOnTheWay,
  repliedWhen,
  replyLost,
} from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

const MOST_MS = 1_250;

describe('a latch', () => {
  let world: LatchWorld;
  let a: LatchInstance;
  let b: LatchInstance;

  beforeEach(() => {
    world = new LatchWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  /** Nothing waits and nothing rings, and when its time is over the server keeps nothing. */
  const expectNothingLeft = async () => {
    for (const { latches, client } of [a, b]) expect([latches.size, client.stats().alarms]).toEqual([0, 0]);
    await world.clock.advance(MOST_MS);
    expect(world.clock.timers).toBe(0);
  };

  it('opens when it was counted down so many times, by whoever', async () => {
    const waiting = track(b.latches.latch('import', 3).wait());
    await settle();
    expect(await a.latches.latch('import', 3).countDown()).toBe(2);
    expect(await b.latches.latch('import', 3).countDown()).toBe(1);
    expect(await a.latches.latch('import', 3).remaining()).toBe(1);
    expect(waiting.state).toBe('pending');
    expect(await a.latches.latch('import', 3).countDown()).toBe(0);
    await settle();
    expect(waiting.state).toBe('fulfilled');
    await b.latches.latch('import', 3).wait();
    await b.latches.latch('import', 3).wait({ waitMs: 0 });
    expect(await b.latches.latch('import', 3).countDown()).toBe(0);
    await expectNothingLeft();
  });

  it('counts each call of one latch object, and each id of the caller once', async () => {
    const latch = a.latches.latch('import', 5);
    expect([await latch.countDown(), await latch.countDown()]).toEqual([4, 3]);
    expect([await latch.countDown({ id: 'x' }), await latch.countDown({ id: 'x' })]).toEqual([2, 2]);
    expect(await b.latches.latch('import', 5).countDown({ id: 'x' })).toBe(2);
    expect(await b.latches.latch('import', 5).countDown({ id: 'y' })).toBe(1);
  });

  describe('countDown', () => {
    it.each([
      ['the reply is lost', replyLost],
      ['the connection breaks after it', brokenAfter],
      ['it never arrives', lostOnTheWay],
      ['Redis refuses for the moment', failing('notExecuted')],
    ])('counts once where %s, and asks again', async (_what, fate) => {
      a.store.next('countDown', fate, fate);
      const counting = track(a.latches.latch('import', 3).countDown());
      await world.clock.advance(3_000);
      expect(counting.value).toBe(2);
      expect(new Set(a.store.commands.map(({ id }) => id)).size).toBe(1);
      expect(a.store.sent('countDown')).toBe(3);
      await expectNothingLeft();
    });

    it('that is executed late, when it was sent again, counts once', async () => {
      const late = gate();
      a.store.next('countDown', executedWhen(late.opened));
      const counting = track(a.latches.latch('import', 3).countDown());
      await world.clock.advance(2_000);
      expect(counting.value).toBe(2);
      late.open();
      await settle();
      expect(await a.latches.latch('import', 3).remaining()).toBe(2);
    });

    it('gives up after the waitMs of the module, and says why', async () => {
      a.store.fates.countDown = failing('unknown', 'no route to Redis');
      const counting = track(a.latches.latch('import', 3).countDown());
      await world.clock.advance(9_000);
      expect(counting.state).toBe('pending');
      await world.clock.advance(1_000);
      expect(counting.error).toBeInstanceOf(LockUnavailableError);
      expect(String(counting.error)).toMatch('Redis could not count down "import": no route to Redis');
      await expectNothingLeft();
    });

    it('is told at once what Redis will never do', async () => {
      a.store.fates.countDown = failing('refused', 'WRONGTYPE');
      const counting = track(a.latches.latch('import', 3).countDown());
      await settle();
      expect(counting.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'failed' });
    });

    it('still counts while the application shuts down, and ends with it', async () => {
      const lease = await a.client.acquire('x');
      const shutdown = a.client.shutdown(5_000);
      expect(await a.latches.latch('import', 3).countDown()).toBe(2);
      a.store.fates.countDown = failing('notExecuted');
      const counting = track(a.latches.latch('import', 3).countDown());
      await settle();
      expect(counting.error).toBeInstanceOf(LockShutdownError);
      await lease.release();
      await shutdown;
      await expectNothingLeft();
    });

    it('is sent once more when the shutdown begins, and is not sent again after that', async () => {
      a.store.fates.countDown = failing('notExecuted');
      const counting = track(a.latches.latch('import', 3).countDown());
      await settle();
      const before = a.store.sent('countDown');
      void a.client.shutdown(0);
      await settle();
      expect(counting.error).toBeInstanceOf(LockShutdownError);
      expect(a.store.sent('countDown')).toBe(before + 1);
    });
  });

  describe('two counts for one live latch', () => {
    it('are an error for whoever comes second, and nothing is changed', async () => {
      await a.latches.latch('import', 3).countDown();
      const wrong = b.latches.latch('import', 2);
      for (const call of [wrong.countDown(), wrong.wait(), wrong.wait({ waitMs: 0 }), wrong.remaining()]) {
        const tracked = track<unknown>(call);
        await settle();
        expect(tracked.error).toBeInstanceOf(LockModeMismatchError);
        expect(tracked.error).toMatchObject({ code: 'LOCK_MODE_MISMATCH', resource: 'import' });
        expect(String(tracked.error)).toMatch('"import" already exists with count 3, not 2.');
      }
      expect(await a.latches.latch('import', 3).remaining()).toBe(2);
      await expectNothingLeft();
    });

    it('do not touch those who wait with the right one', async () => {
      const right = track(a.latches.latch('import', 1).wait());
      await settle();
      const wrong = track(a.latches.latch('import', 2).wait());
      await settle();
      expect([right.state, wrong.state]).toEqual(['pending', 'rejected']);
      await b.latches.latch('import', 1).countDown();
      await settle();
      expect(right.state).toBe('fulfilled');
    });
  });

  describe('wait', () => {
    it('ends after waitMs, and says how many are missing', async () => {
      await b.latches.latch('import', 3).countDown();
      const waiting = track(a.latches.latch('import', 3).wait({ waitMs: 3_000 }));
      await world.clock.advance(2_999);
      expect(waiting.state).toBe('pending');
      await world.clock.advance(1);
      expect(waiting.error).toBeInstanceOf(LockTimeoutError);
      expect(waiting.error).toMatchObject({ waitedMs: 3_000, lastAttempt: 'busy', resource: 'import' });
      expect(String(waiting.error)).toMatch('did not open within 3 s: 2 of 3 count-downs are missing');
      await expectNothingLeft();
    });

    it('waits for the waitMs of the module where nothing else is said', async () => {
      const c = world.instance('c', { defaults: { waitMs: 500 } });
      const waiting = track(c.latches.latch('import', 3).wait());
      await world.clock.advance(500);
      expect(waiting.error).toMatchObject({ code: 'LOCK_TIMEOUT', waitedMs: 500 });
    });

    it('only looks where waitMs is 0, and does not create the latch', async () => {
      const waiting = track(a.latches.latch('import', 3).wait({ waitMs: 0 }));
      await settle();
      expect(waiting.error).toMatchObject({ code: 'LOCK_TIMEOUT', waitedMs: 0 });
      expect(world.server.isEmpty).toBe(true);
      a.store.next('read', failing('notExecuted', 'LOADING'));
      const failed = track(a.latches.latch('import', 3).wait({ waitMs: 0 }));
      await settle();
      expect(failed.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'wait for' });
      await expectNothingLeft();
    });

    it('ends with the signal of the caller, whose listener is gone after that', async () => {
      const controller = new AbortController();
      const { signal } = controller;
      const reason = new Error('too late');
      const opened = track(a.latches.latch('open', 1).wait({ signal }));
      await b.latches.latch('open', 1).countDown();
      const late = track(a.latches.latch('late', 1).wait({ signal, waitMs: 10 }));
      await a.latches.latch('open', 1).wait({ signal, waitMs: 0 });
      const waiting = [Infinity, 5_000].map((waitMs) => track(a.latches.latch('import', 3).wait({ signal, waitMs })));
      a.store.next('read', lostOnTheWay);
      waiting.push(track(a.latches.latch('import', 3).wait({ signal, waitMs: 0 })));
      await world.clock.advance(10);
      expect([opened.state, late.state]).toEqual(['fulfilled', 'rejected']);
      expect(getEventListeners(signal, 'abort')).toHaveLength(1);
      controller.abort(reason);
      await settle();
      for (const { error } of waiting) {
        expect(error).toBeInstanceOf(LockAbortedError);
        expect((error as Error).cause).toBe(reason);
      }
      const after = track(a.latches.latch('import', 3).wait({ signal }));
      await settle();
      expect(after.error).toBeInstanceOf(LockAbortedError);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      await expectNothingLeft();
    });

    it('ends with the application, and nobody waits after that', async () => {
      const others = getEventListeners(a.client.closing, 'abort').length;
      const waiting = [Infinity, 5_000].map((waitMs) => track(a.latches.latch('import', 3).wait({ waitMs })));
      a.store.next('read', lostOnTheWay);
      waiting.push(track(a.latches.latch('import', 3).wait({ waitMs: 0 })));
      await settle();
      await a.client.shutdown(0);
      waiting.push(track(a.latches.latch('import', 3).wait()));
      await settle();
      for (const { error } of waiting) expect(error).toBeInstanceOf(LockShutdownError);
      expect(getEventListeners(a.client.closing, 'abort')).toHaveLength(others);
      await expectNothingLeft();
    });

    it('goes on where Redis cannot be reached, and finds it open', async () => {
      a.store.next('wait', failing('unknown'), failing('notExecuted'), lostOnTheWay);
      const waiting = track(a.latches.latch('import', 1).wait());
      await b.latches.latch('import', 1).countDown();
      await world.clock.advance(2_000);
      expect(waiting.state).toBe('fulfilled');
    });

    it('says that Redis was not to be reached, or would never do it', async () => {
      a.store.fates.wait = failing('notExecuted', 'LOADING');
      const waiting = track(a.latches.latch('import', 1).wait({ waitMs: 700 }));
      await world.clock.advance(700);
      expect(waiting.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'wait for' });
      expect(String(waiting.error)).toMatch('Redis could not wait for "import": LOADING');
      a.store.fates.wait = failing('refused', 'NOPERM');
      const refused = [1, 2].map(() => track(a.latches.latch('import', 1).wait({ waitMs: Infinity })));
      await settle();
      for (const { error } of refused) expect(String(error)).toMatch('NOPERM');
      await expectNothingLeft();
    });

    it('says that Redis has fallen silent, also where it had answered before', async () => {
      const waiting = track(a.latches.latch('import', 1).wait({ waitMs: 5_000 }));
      await settle();
      a.store.fates.wait = lostOnTheWay;
      await world.clock.advance(2_000);
      const late = track(a.latches.latch('import', 1).wait({ waitMs: 3_000 }));
      await world.clock.advance(3_000);
      expect(waiting.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'timeout' });
      expect(late.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'timeout' });
    });
  });

  describe('those who wait', () => {
    it('find out with their heartbeat where the message was lost', async () => {
      a.store.isDeaf = true;
      const waiting = track(a.latches.latch('import', 1).wait());
      await world.clock.advance(5_500);
      const asked = a.store.sent('wait');
      expect(asked).toBeGreaterThanOrEqual(5);
      expect(asked).toBeLessThanOrEqual(6);
      await b.latches.latch('import', 1).countDown();
      await world.clock.advance(MOST_MS);
      expect(waiting.state).toBe('fulfilled');
    });

    it('ask at once when the connection is new', async () => {
      a.store.isDeaf = true;
      const waiting = track(a.latches.latch('import', 1).wait());
      await settle();
      await b.latches.latch('import', 1).countDown();
      await settle();
      expect(waiting.state).toBe('pending');
      a.store.reconnect();
      await settle();
      expect(waiting.state).toBe('fulfilled');
    });

    it('do not believe a message: it may be about an earlier latch of the name', async () => {
      const waiting = track(a.latches.latch('import', 1).wait());
      await settle();
      a.store.deliver('import', 1);
      a.store.deliver('import', 2);
      a.store.deliver('other', 1);
      await settle();
      expect(waiting.state).toBe('pending');
      expect(a.store.sent('wait')).toBe(2);
    });

    it('ask no more than ten times a second, however many messages come, and miss no opening', async () => {
      const waiting = track(a.latches.latch('import', 1).wait({ waitMs: Infinity }));
      await settle();
      for (let i = 0; i < 2_000; i++) {
        for (let line = 0; line < 5; line++) a.store.deliver('import', 1);
        await world.clock.advance(1);
      }
      expect(a.store.sent('wait')).toBeGreaterThan(15);
      expect(a.store.sent('wait')).toBeLessThan(25);
      await b.latches.latch('import', 1).countDown();
      await world.clock.advance(100);
      expect(waiting.state).toBe('fulfilled');
    });

    it('ask again where the message came while they asked', async () => {
      const waiting = track(a.latches.latch('import', 1).wait({ waitMs: Infinity }));
      await settle();
      a.store.deliver('import', 1);
      const reply = gate();
      a.store.next('wait', repliedWhen(reply.opened));
      await world.clock.advance(100);
      a.store.deliver('import', 1); // asks
      await b.latches.latch('import', 1).countDown(); // and is told at once
      await settle();
      reply.open();
      await world.clock.advance(100);
      expect(waiting.state).toBe('fulfilled');
      expect(a.store.sent('wait')).toBeLessThan(5);
    });

    it('hear a message that comes before the reply to their question', async () => {
      const reply = gate();
      a.store.next('wait', repliedWhen(reply.opened));
      const waiting = track(a.latches.latch('import', 1).wait());
      await settle();
      await b.latches.latch('import', 1).countDown();
      await settle();
      expect(waiting.state).toBe('fulfilled');
      reply.open();
      await expectNothingLeft();
    });

    it('are not put off by a late reply to a question that they have asked again', async () => {
      const late = gate();
      a.store.next('wait', repliedWhen(late.opened), lostOnTheWay);
      const waiting = track(a.latches.latch('import', 1).wait());
      await world.clock.advance(1_100);
      late.open();
      await world.clock.advance(960);
      expect(a.store.sent('wait')).toBe(3);
      expect(waiting.state).toBe('pending');
    });

    it('ask together: a thousand in a process cost no more than one', async () => {
      const latch = a.latches.latch('import', 1);
      const waiting = Array.from({ length: 1_000 }, () => track(latch.wait({ waitMs: Infinity })));
      await world.clock.advance(10_000);
      expect(a.store.sent('wait')).toBeLessThanOrEqual(11);
      expect(world.clock.timers).toBe(1);
      await b.latches.latch('import', 1).countDown();
      await settle();
      expect(waiting.every(({ state }) => state === 'fulfilled')).toBe(true);
      await expectNothingLeft();
    });

    it('do not end with the one who came first', async () => {
      const controller = new AbortController();
      const latch = a.latches.latch('import', 1);
      const first = track(latch.wait({ signal: controller.signal }));
      const second = track(latch.wait({ waitMs: 2_000 }));
      const third = track(latch.wait({ waitMs: Infinity }));
      await settle();
      controller.abort();
      await world.clock.advance(2_000);
      expect([first.error, second.error]).toMatchObject([{ code: 'LOCK_ABORTED' }, { code: 'LOCK_TIMEOUT' }]);
      await b.latches.latch('import', 1).countDown();
      await settle();
      expect(third.state).toBe('fulfilled');
    });

    it('stood still for longer than their place: they look when they go on', async () => {
      const waiting = track(a.latches.latch('import', 1).wait({ waitMs: Infinity }));
      await settle();
      a.store.isDeaf = true;
      world.clock.standStill(60_000);
      await b.latches.latch('import', 1).countDown();
      await world.clock.advance(0);
      expect(waiting.state).toBe('fulfilled');
    });

    it('see it open although its TTL ends right after that and the message is lost', async () => {
      a.store.isDeaf = true;
      const waiting = track(a.latches.latch('import', 1, { ttlMs: 1_200 }).wait());
      await world.clock.advance(1_190);
      await b.latches.latch('import', 1).countDown();
      await world.clock.advance(MOST_MS);
      expect(waiting.state).toBe('fulfilled');
      expect(a.store.sent('wait')).toBe(3);
    });

    it('go on waiting where it expires unopened: they wait for the next latch of the name', async () => {
      const waiting = track(a.latches.latch('import', 2, { ttlMs: 2_000 }).wait({ waitMs: 30_000 }));
      await b.latches.latch('import', 2).countDown();
      await world.clock.advance(5_000);
      expect(await b.latches.latch('import', 2).remaining()).toBe(2);
      expect(waiting.state).toBe('pending');
      await b.latches.latch('import', 2).countDown();
      await b.latches.latch('import', 2).countDown();
      await settle();
      expect(waiting.state).toBe('fulfilled');
    });

    it('are told where the next latch of the name has another count', async () => {
      const waiting = track(a.latches.latch('import', 2, { ttlMs: 1_500 }).wait({ waitMs: 30_000 }));
      await settle();
      a.store.fates.wait = failing('notExecuted');
      await world.clock.advance(1_500);
      await b.latches.latch('import', 3).countDown();
      delete a.store.fates.wait;
      await world.clock.advance(MOST_MS);
      expect(waiting.error).toBeInstanceOf(LockModeMismatchError);
    });
  });

  it('does not open for those who come when its time is over', async () => {
    await a.latches.latch('import', 1, { ttlMs: 1_000 }).countDown({ id: 'x' });
    await world.clock.advance(1_000);
    expect(await a.latches.latch('import', 1).remaining()).toBe(1);
    expect(await a.latches.latch('import', 1).countDown({ id: 'x' })).toBe(0);
  });

  it('asks once for what remains, and says why it cannot tell', async () => {
    a.store.fates.read = lostOnTheWay;
    const remaining = track(a.latches.latch('import', 1).remaining());
    await world.clock.advance(1_000);
    expect(remaining.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'read', lastAttempt: 'timeout' });
  });
});

it.each([
  ['time-out', undefined, 'LOCK_TIMEOUT'],
  ['abort', 'abort', 'LOCK_ABORTED'],
])('the error of a wait has a frame of its caller, and its group: %s', async (_, how, code) => {
  const world = new LatchWorld();
  const { latches } = world.instance('a');
  const giveUp = new AbortController();
  class Shop {
    async payAll(): Promise<void> {
      await latches.latch('import', 1).wait({ waitMs: 1_000, signal: giveUp.signal });
    }
  }
  const paid = track(new Shop().payAll());
  await world.clock.advance(1);
  if (how) giveUp.abort();
  await world.clock.advance(1_000);
  expect(paid.error).toMatchObject({ code, group: 'import' });
  expect((paid.error as Error).stack).toMatch(/ at (async )?Shop\.payAll /);
});
