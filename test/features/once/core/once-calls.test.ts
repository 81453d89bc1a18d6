import { LockBusyError, LockTimeoutError } from '../../../../lib/kernel/api/busy-errors.js';
import {
  InvalidLockOptionsError,
  InvalidResourceError,
  LockAbortedError,
  LockShutdownError,
  LockUnavailableError,
} from '../../../../lib/kernel/api/errors.js';
import { type LeaseLostError, LockReentryError } from '../../../../lib/kernel/api/lease-errors.js';
import { OnceCalls } from '../../../../lib/features/once/core/once-calls.js';
import { rejection } from '../../../support/expect/eventually.js';
import { gate, track } from '../../../support/expect/tracked.js';
import { settle } from '../../../support/world/fake-clock.js';
import { eventsOf } from '../../../support/world/lock-world.js';
import { brokenAfter, failing, lostOnTheWay, repliedWhen, replyLost } from '../../../support/world/scripted-store.js';
import { type OnceInstance, OnceWorld } from './once-world.js';

describe('once', () => {
  let world: OnceWorld;
  let a: OnceInstance;
  let b: OnceInstance;
  let runs: number;

  beforeEach(() => {
    world = new OnceWorld();
    a = world.process('a');
    b = world.process('b');
    runs = 0;
  });

  const count = async () => ++runs;
  /** Work that ends when the test wants, with the number of its run. */
  const working = () => {
    const end = gate();
    const work = async () => {
      const run = ++runs;
      await end.opened;
      return run;
    };
    return { work, end: end.open };
  };

  /** Nothing is held, nothing rings, and no call waits. */
  const expectNothingLeft = async () => {
    await settle();
    for (const { instance } of [a, b]) {
      const { leases, alarms, orphanReleases } = instance.locks.stats();
      expect([leases, alarms, orphanReleases, instance.locks.watches.size]).toEqual([0, 0, 0, 0]);
    }
    expect(world.server.isEmpty).toBe(true);
  };

  it('runs the work, and keeps its result until the TTL has passed', async () => {
    expect(await a.run(count)).toBe(1);
    await world.clock.advance(59_999);
    expect([await a.run(count), await b.run(count)]).toEqual([1, 1]);
    await world.clock.advance(1);
    expect(await b.run(count)).toBe(2);
    await expectNothingLeft();
  });

  it('costs one read and no lock while the result is kept', async () => {
    await a.run(count);
    b.results.sent.length = 0;
    for (let call = 0; call < 3; call++) await b.run(count);
    expect(b.results.sent).toEqual(['read', 'read', 'read']);
    expect(b.instance.store.commands).toEqual([]);
    expect(b.instance.events.map(({ type }) => type)).toEqual(['onceReturned', 'onceReturned', 'onceReturned']);
  });

  it('returns the result of the first call to all calls of a process, with one request', async () => {
    const { work, end } = working();
    const calls = Array.from({ length: 1_000 }, () => a.run(work));
    await settle();
    end();
    expect(new Set(await Promise.all(calls))).toEqual(new Set([1]));
    expect(a.results.sent.filter((verb) => verb === 'claim')).toHaveLength(1);
    const outcomes = eventsOf(a.instance, 'onceReturned').map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === 'run')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'wait')).toHaveLength(999);
    await expectNothingLeft();
  });

  it('reads nothing for a call that joins another one', async () => {
    const { work, end } = working();
    const first = a.run(work);
    await settle();
    const second = a.run(count);
    end();
    expect(await Promise.all([first, second])).toEqual([1, 1]);
    expect(a.results.sent).toEqual(['read', 'claim', 'keep']);
  });

  it('returns the result to waiting processes at once, none after another', async () => {
    const others = ['c', 'd', 'e'].map((name) => world.process(name));
    const { work, end } = working();
    const first = a.run(work);
    await settle();
    const waiting = [b, ...others].map((other) => other.run(count));
    await settle();
    end();
    expect(await Promise.all([first, ...waiting])).toEqual([1, 1, 1, 1, 1]);
    // The first question, the one after the message, and no lock.
    for (const { results } of others) expect(results.sent).toEqual(['read', 'claim', 'claim']);
    expect(eventsOf(b.instance, 'onceReturned').map(({ outcome }) => outcome)).toEqual(['wait']);
    await expectNothingLeft();
  });

  it('returns to each call an object of its own, as it was kept, even to the one that did the work', async () => {
    const work = async () => ({ at: new Date(0), left: undefined });
    const results = await Promise.all([a.run<unknown>(work), a.run<unknown>(work)]);
    results.push(await b.run<unknown>(work));
    for (const result of results) expect(result).toStrictEqual({ at: '1970-01-01T00:00:00.000Z' });
    expect(new Set(results).size).toBe(3);
  });

  it.each([undefined, null, 0, '', false, [], {}])('keeps %p', async (result) => {
    const work = async () => {
      runs++;
      return result;
    };
    for (const process of [a, a, b]) expect(await process.run<unknown>(work)).toStrictEqual(result);
    expect(runs).toBe(1);
  });

  it('uses serialize and parse for results that are no JSON', async () => {
    const options = {
      serialize: (big: bigint) => big.toString(36),
      parse: (text: string) => BigInt(parseInt(text, 36)),
    };
    expect(await a.run(async () => 1_000n, options)).toBe(1_000n);
    expect(await b.run(async () => 0n, options)).toBe(1_000n);
    expect(world.result).toBe('=rs');
  });

  describe('work that throws', () => {
    it('keeps nothing, and rejects the waiting calls of its process with the same error', async () => {
      const error = new Error('no database');
      const end = gate();
      const work = () => end.opened.then(() => Promise.reject(error));
      const calls = [a.run(work), a.run(count), a.run(count)].map(rejection);
      await settle();
      end.open();
      for (const failed of await Promise.all(calls)) expect(failed).toBe(error);
      expect(world.result).toBeUndefined();
      expect(await a.run(count)).toBe(1);
      await expectNothingLeft();
    });

    it('runs again in the other processes, in one at a time', async () => {
      const others = [b, world.process('c'), world.process('d')];
      const first = rejection(a.run(() => settle().then(() => Promise.reject(new Error('1')))));
      await settle();
      let [atOnce, most] = [0, 0];
      const work = async () => {
        most = Math.max(most, ++atOnce);
        await settle();
        atOnce--;
        if (++runs < 2) throw new Error('2');
        return 'done';
      };
      const waiting = others.map((other) => other.run(work));
      await first;
      const [failed, ...done] = await Promise.allSettled(waiting).then((all) => all.toSorted(byStatus));
      expect(failed).toMatchObject({ status: 'rejected', reason: { message: '2' } });
      expect(done).toMatchObject([{ value: 'done' }, { value: 'done' }]);
      expect([most, runs]).toEqual([1, 2]);
      await expectNothingLeft();
    });

    it('keeps nothing if it throws undefined', async () => {
      await expect(a.run(() => Promise.reject(undefined))).rejects.toBeUndefined();
      expect(await a.run(count)).toBe(1);
    });
  });

  const byStatus = (one: { status: string }, other: { status: string }) => (one.status < other.status ? 1 : -1);

  describe('a runner that dies', () => {
    it('is replaced by the next waiter when its lease has ended', async () => {
      void a.run(() => new Promise<never>(() => {}), { leaseMs: 1_000 });
      await settle();
      const waiting = track(b.run(count));
      await settle();
      a.instance.store.fates.renew = lostOnTheWay;
      await world.clock.advance(1_260);
      expect(waiting.value).toBe(1);
    });

    it('finds the newer result kept when it resumes, and stores none', async () => {
      const { work, end } = working();
      const lost = rejection<LeaseLostError>(a.run(work, { leaseMs: 1_000 }));
      await settle();
      a.instance.store.fates.renew = lostOnTheWay;
      await world.clock.advance(1_010);
      expect(await b.run(async () => 'newer')).toBe('newer');
      end();
      expect(await lost).toMatchObject({ name: 'LeaseLostError', workFinished: true, value: 1 });
      expect(world.result).toBe('="newer"');
      expect(a.results.sent).not.toContain('keep');
    });
  });

  describe('a lost lease', () => {
    const loseWhileRunning = async (options = {}) => {
      const { work, end } = working();
      const call = a.run(work, options);
      const settled = Promise.allSettled([call, a.run(count, { onLost: 'ignore' })]);
      await settle();
      world.server.lose('once:report:7');
      a.instance.store.fates.renew = undefined;
      await world.clock.advance(6_000);
      end();
      return settled;
    };

    it('keeps no result, and onLost decides what each call gets', async () => {
      const [threw, ignored] = await loseWhileRunning();
      expect(threw).toMatchObject({
        reason: { name: 'LeaseLostError', reason: 'takenOver', workFinished: true, value: 1 },
      });
      expect(ignored).toMatchObject({ value: 1 });
      expect(world.result).toBeUndefined();
    });

    it('keeps no result with onLost ignore', async () => {
      const [ignored] = await loseWhileRunning({ onLost: 'ignore' });
      expect(ignored).toMatchObject({ value: 1 });
      expect(world.result).toBeUndefined();
    });

    it('is detected by the command that stores the result, which then stores nothing', async () => {
      const failed = await rejection(
        a.run(async () => {
          world.server.lose('once:report:7');
          return 1;
        }),
      );
      expect(failed).toMatchObject({ name: 'LeaseLostError', reason: 'takenOver', workFinished: true, value: 1 });
      expect([world.result, a.results.sent.at(-1)]).toEqual([undefined, 'keep']);
    });

    it('makes a call claim again if its grant arrives after the lease', async () => {
      const answer = gate();
      a.results.next('claim', repliedWhen(answer.opened));
      const call = track(a.run(count, { leaseMs: 200 }));
      await world.clock.advance(200);
      answer.open();
      await world.clock.advance(100);
      expect([call.value, runs]).toEqual([1, 1]);
      expect(a.results.sent).toEqual(['read', 'claim', 'claim', 'keep']);
      await expectNothingLeft();
    });
  });

  describe('commands without a reply', () => {
    it('are repeated for a read, and for a claim that may have been executed', async () => {
      a.results.next('read', failing('notExecuted'), brokenAfter);
      a.results.next('claim', brokenAfter);
      const call = track(a.run(count));
      await world.clock.advance(1_000);
      expect(call.value).toBe(1);
      expect(a.results.sent).toEqual(['read', 'read', 'read', 'claim', 'claim', 'keep']);
      await expectNothingLeft();
    });

    it('fail after unavailableMs, together with all calls of the process', async () => {
      a.results.fates.claim = replyLost;
      const calls = [a.run(count), a.run(count), a.run(count)].map((call) => track(call));
      await world.clock.advance(3_100);
      for (const { error } of calls) expect(error).toBeInstanceOf(LockUnavailableError);
      expect(runs).toBe(0);
      a.results.fates.claim = undefined;
      await world.clock.advance(100);
      // The claim that may have been granted was released.
      expect(await b.run(count)).toBe(1);
      await expectNothingLeft();
    });

    it('fail at once if the store refuses', async () => {
      a.results.next('claim', failing('refused', 'NOPERM'));
      expect(await rejection(a.run(count))).toMatchObject({ code: 'LOCK_UNAVAILABLE', resource: 'once:report:7' });
      await expectNothingLeft();
    });

    it('return the result if the last reply is lost, and store it', async () => {
      a.results.next('keep', brokenAfter);
      const call = track(a.run(count));
      await world.clock.advance(1_000);
      expect(call.value).toBe(1);
      expect(await b.run(count)).toBe(1);
      expect(eventsOf(a.instance, 'releaseFailed')).toHaveLength(1);
      await expectNothingLeft();
    });

    it('store the result later if the last command did not arrive', async () => {
      a.results.next('keep', failing('unknown'));
      expect(await a.run(count)).toBe(1);
      await world.clock.advance(1_000);
      expect(world.result).toBe('=1');
    });
  });

  describe('a call that waits', () => {
    let end: () => void;

    beforeEach(async () => {
      const first = working();
      end = first.end;
      a.run(first.work).catch(() => {});
      await settle();
    });

    afterEach(async () => {
      end();
      await expectNothingLeft();
    });

    it.each(['a', 'b'])('times out after waitMs, in process %s', async (name) => {
      const call = track((name === 'a' ? a : b).run(count, { waitMs: 500 }));
      await world.clock.advance(499);
      expect(call.state).toBe('pending');
      await world.clock.advance(1);
      expect(call.error).toBeInstanceOf(LockTimeoutError);
      expect(call.error).toMatchObject({ resource: 'once:report:7', waitedMs: 500, group: 'report' });
    });

    it.each(['a', 'b'])('fails at once with waitMs 0, in process %s, and names the runner', async (name) => {
      const error = await rejection<LockBusyError>((name === 'a' ? a : b).run(count, { waitMs: 0 }));
      expect(error.code).toBe('LOCK_BUSY');
      expect(error.holders).toMatchObject([{ instanceId: 'a' }]);
    });

    it.each(['a', 'b'])('ends when its signal aborts, in process %s', async (name) => {
      const controller = new AbortController();
      const call = rejection((name === 'a' ? a : b).run(count, { signal: controller.signal }));
      await settle();
      controller.abort(new Error('left'));
      expect(await call).toBeInstanceOf(LockAbortedError);
    });

    it.each(['a', 'b'])('ends at the shutdown of process %s', async (name) => {
      const process = name === 'a' ? a : b;
      const call = rejection(process.run(count));
      await settle();
      process.instance.locks.beginShutdown();
      expect(await call).toBeInstanceOf(LockShutdownError);
    });

    it('leaves the others waiting when it leads them and times out', async () => {
      const leads = rejection(b.run(count, { waitMs: 500 }));
      await settle();
      const follows = track(b.run(count));
      await world.clock.advance(500);
      expect(await leads).toBeInstanceOf(LockTimeoutError);
      await settle();
      expect(follows.state).toBe('pending');
      end();
      await settle();
      expect(follows.value).toBe(1);
    });
  });

  it('returns a kept result with waitMs 0, and during a shutdown', async () => {
    await a.run(count);
    expect(await b.run(count, { waitMs: 0 })).toBe(1);
    b.instance.locks.beginShutdown();
    expect(await b.run(count)).toBe(1);
    await world.clock.advance(60_000);
    expect(await rejection(b.run(count))).toBeInstanceOf(LockShutdownError);
  });

  it('refuses work that would wait for itself', async () => {
    const failed = await rejection(a.run(() => a.run(count)));
    expect(failed).toBeInstanceOf(LockReentryError);
    // Another key is no problem, and neither is a lock of the same name.
    expect(await a.run(() => a.instance.locks.using('report:7', {}, () => a.run(count, {}, 'other')))).toBe(1);
  });

  describe('a result that is too large', () => {
    it('is returned and not kept', async () => {
      const work = async () => {
        runs++;
        return 'x'.repeat(9);
      };
      expect(await a.run(work, { maxBytes: 11 })).toBe('x'.repeat(9));
      expect(await a.run(work, { maxBytes: 10 })).toBe('x'.repeat(9));
      expect(runs).toBe(1);
      await a.once.forget('report:7');
      expect(await a.run(work, { maxBytes: 10 })).toBe('x'.repeat(9));
      expect(world.result).toBeUndefined();
      expect(eventsOf(a.instance, 'resultTooLarge')).toMatchObject([
        { resource: 'once:report:7', group: 'report', bytes: 11, maxBytes: 10 },
      ]);
      await expectNothingLeft();
    });

    it('is measured in bytes, and 64 kB by default', async () => {
      expect(await a.run(async () => 'é'.repeat(32 * 1024 - 1))).toHaveLength(32 * 1024 - 1);
      expect(world.result).toBeDefined();
      await a.once.forget('report:7');
      await a.run(async () => 'é'.repeat(32 * 1024));
      expect(world.result).toBeUndefined();
    });
  });

  describe('a kept text that is unreadable', () => {
    it.each(['={"half":', 'hello', '', '=', '{}'])('counts as no result, and is replaced: %p', async (text) => {
      world.server.redis.set(world.resultKey, text);
      expect(await a.run(count)).toBe(1);
      expect(world.result).toBe('=1');
      expect(eventsOf(a.instance, 'resultUnreadable')).toMatchObject([{ resource: 'once:report:7', group: 'report' }]);
      await expectNothingLeft();
    });

    it('of another type counts as no result, and is replaced', async () => {
      world.server.redis.hset(world.resultKey, 'field', 'value');
      expect(await a.run(count)).toBe(1);
      expect(world.result).toBe('=1');
    });

    it('counts as none in the process whose parse throws', async () => {
      await a.run(count);
      const strict = {
        serialize: String,
        parse: (text: string) => {
          if (text !== '2') throw new Error('not mine');
          return Number(text);
        },
      };
      expect(await b.run(count, strict)).toBe(2);
    });
  });

  it('reports serialize and parse that do not match', async () => {
    const options = {
      serialize: () => 'x',
      parse: () => {
        throw new Error('never');
      },
    };
    expect(await rejection(a.run(count, options))).toMatchObject({ option: 'parse' });
  });

  it.each<[string, () => unknown]>([
    ['throws', () => 1n],
    ['returns no text', () => () => {}],
  ])('refuses a result for which JSON.stringify %s', async (_, work) => {
    const failed = await rejection(a.run(async () => work()));
    expect(failed).toBeInstanceOf(InvalidLockOptionsError);
    expect(failed).toMatchObject({ option: 'serialize' });
    expect(world.result).toBeUndefined();
  });

  it('refuses work that returns a generator', async () => {
    const failed = await rejection(
      a.run(async () =>
        (function* () {
          yield 1;
        })(),
      ),
    );
    expect(failed).toMatchObject({ option: 'work' });
  });

  describe('forget', () => {
    it('deletes the result', async () => {
      await a.run(count);
      await b.once.forget('report:7');
      expect(await a.run(count)).toBe(2);
      await a.once.forget('never kept');
    });

    it('keeps no result of work that began before, in either process', async () => {
      const { work, end } = working();
      const before = [a.run(work), a.run(work), b.run(count)];
      await settle();
      await b.once.forget('report:7');
      const after = b.run(count);
      await settle();
      end();
      // The calls of its process that came before share it.
      expect(await Promise.all(before)).toEqual([1, 1, 2]);
      expect(await after).toBe(2);
      expect(world.result).toBe('=2');
      await expectNothingLeft();
    });

    it('keeps a later call of the same process from sharing the running work', async () => {
      const { work, end } = working();
      const before = a.run(work);
      await settle();
      await a.once.forget('report:7');
      const after = a.run(count);
      await settle();
      end();
      expect([await before, await after]).toEqual([1, 2]);
    });

    it('leaves nothing behind forever if the running work dies', async () => {
      void a.run(() => new Promise<never>(() => {}));
      await settle();
      await a.once.forget('report:7');
      a.instance.store.fates.renew = lostOnTheWay;
      await world.clock.advance(24 * 60 * 60 * 1_000);
      expect(world.result).toBeUndefined();
    });
  });

  describe('invalid input', () => {
    it.each<[string, unknown, object]>([
      ['key', 'report:7', { resultTtlMs: 0 }],
      ['key', 'report:7', {}],
      ['key', 'report:7', { resultTtlMs: 1, maxBytes: 0 }],
      ['key', 'report:7', { resultTtlMs: 1, serialize: String }],
      ['key', 'report:7', { resultTtlMs: 1, mode: 'read' }],
      ['key', ['report:7'], { resultTtlMs: 1 }],
      ['key', 'once:report:7', { resultTtlMs: 1 }],
      ['key', 'report:undefined', { resultTtlMs: 1 }],
      ['key', 'x'.repeat(508), { resultTtlMs: 1 }],
    ])('is refused before anything is sent: %s %p %p', async (_, key, options) => {
      const failed = await rejection(a.once.run(key, options as never, count));
      expect(failed).toBeInstanceOf(InvalidLockOptionsError);
      expect(a.results.sent).toEqual([]);
    });

    it('keeps other locks from the names of once', () => {
      const failed = rejection(a.instance.locks.acquire('once:report:7'));
      return expect(failed).resolves.toBeInstanceOf(InvalidResourceError);
    });

    it('is refused for a store that keeps no results', async () => {
      const { locks } = a.instance;
      const once = new OnceCalls(locks.deps, locks.leases, locks.watches, undefined);
      for (const call of [once.run('a', { resultTtlMs: 1 }, count), once.forget('a')]) {
        expect(await rejection(call)).toMatchObject({ option: 'quorum' });
      }
    });
  });
});
