import {
  hasLease,
  type OneOrSeveral,
  sharableWith,
  withLease,
  type StoreLease,
  withoutLease,
} from '../../../lib/kernel/holding/store-lease.js';
import { type PendingCall, WaitingCalls } from '../../../lib/kernel/acquiring/pending-call.js';
import type { LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import type { LockOptions, ResolvedLockOptions } from '../../../lib/kernel/api/lock-options.js';
import { gate, track, type Tracked } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, lostOnTheWay } from '../../support/world/scripted-store.js';

describe('waiters of one instance', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('queue up, and only the first one talks to Redis', async () => {
    await a.locks.acquire('stock');
    for (let i = 0; i < 50; i++) track(b.locks.acquire('stock', { waitMs: Infinity }));
    await settle();
    expect(b.store.commands).toHaveLength(1);
    await world.clock.advance(10_000);
    expect(b.store.commands.length).toBeLessThanOrEqual(11);
  });

  it('are served first come, first served', async () => {
    const order: number[] = [];
    const held = await b.locks.acquire('stock');
    const all = [0, 1, 2, 3, 4].map((number) =>
      track(b.locks.using('stock', undefined, async () => void order.push(number))),
    );
    await world.clock.advance(100);
    await held.release();
    await world.clock.advance(100);
    expect(all.every(({ state }) => state === 'fulfilled')).toBe(true);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it('move up when the first one gives up, and keep its place in the queue of the store', async () => {
    const held = await a.locks.acquire('stock');
    const controller = new AbortController();
    const first = track(b.locks.acquire('stock', { signal: controller.signal }));
    const second = track(b.locks.acquire('stock'));
    await settle();
    controller.abort();
    await settle();
    expect(first.state).toBe('rejected');
    expect(b.store.commands).toHaveLength(1);
    expect(world.server.listWaiters('stock')).toEqual(['b']);
    await held.release();
    await settle();
    expect(second.state).toBe('fulfilled');
  });

  it('can give up anywhere in the line, and leave the others in their order', async () => {
    const order: number[] = [];
    const held = await b.locks.acquire('stock');
    const stops = Array.from({ length: 8 }, () => new AbortController());
    const calls = stops.map(({ signal }, number) =>
      track(b.locks.using('stock', { signal }, async () => void order.push(number))),
    );
    for (const number of [0, 3, 4, 7]) stops[number]!.abort();
    calls.push(track(b.locks.using('stock', undefined, async () => void order.push(8))));
    stops[6]!.abort();
    await held.release();
    await settle();
    expect(order).toEqual([1, 2, 5, 8]);
    expect(b.locks.stats()).toMatchObject({ resources: 0, leases: 0 });
  });
});

describe('the process state of one resource', () => {
  /** In microseconds, of this process alone: others use the processor too. */
  const usedUs = (since: NodeJS.CpuUsage): number => {
    const { user, system } = process.cpuUsage(since);
    return user + system;
  };

  /** The growth of processor time per step with 16 times as many: the best of some rounds. */
  function growth(round: (count: number) => void): number {
    const usedBy = (count: number): number => {
      const times = Array.from({ length: 7 }, () => {
        const from = process.cpuUsage();
        // As many steps in each: a short round would be measured by a few ticks of the clock.
        for (let done = 0; done < 32_000; done += count) round(count);
        return usedUs(from);
      });
      return Math.min(...times);
    };
    usedBy(1_000); // until it is compiled
    return usedBy(32_000) / usedBy(2_000);
  }

  it('costs each of 32,000 permits what it costs each of 2,000', () => {
    const semaphore = { mode: 'semaphore' } as ResolvedLockOptions;
    const times = growth((count) => {
      const leases = Array.from({ length: count }, () => ({ isShared: true, mayShareWith: () => false }));
      let held: OneOrSeveral;
      for (const lease of leases as unknown as StoreLease[]) {
        sharableWith(held, semaphore);
        held = withLease(held, lease);
      }
      for (const lease of leases as unknown as StoreLease[])
        if (hasLease(held, lease)) held = withoutLease(held, lease);
      expect(held).toBeUndefined();
    });
    expect(times).toBeLessThan(6);
  }, 60_000);

  it('costs each of 32,000 waiting calls what it costs each of 2,000', () => {
    const times = growth((count) => {
      const waiting = new WaitingCalls();
      for (let index = 0; index < count; index++) waiting.add({} as PendingCall);
      while (waiting.size > 0) waiting.next();
      expect(waiting.first).toBeUndefined();
    });
    expect(times).toBeLessThan(6);
  }, 60_000);
});

const READ: LockOptions = { mode: 'read', waitMs: Infinity };
const WRITE: LockOptions = { mode: 'write', waitMs: Infinity };

describe('readers of one process', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a', { defaults: { leaseMs: 30_000 } });
    b = world.instance('b');
  });

  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);
  const read = (options: LockOptions = {}) => a.locks.acquire('stock', { ...READ, ...options });
  const size = ({ locks }: Instance) => locks['operators']['deps'].localQueues.size;

  async function expectNothingLeft(): Promise<void> {
    await world.clock.advance(60_000);
    expect([world.server.isEmpty, world.clock.timers, size(a), size(b)]).toEqual([true, 0, 0, 0]);
  }

  it('share the lease of the first of them in Redis, each with a larger token', async () => {
    const leases = await Promise.all([read(), read(), read()]);
    const later = await read();
    const tokens = [...leases, later].map(({ fencingToken }) => fencingToken);
    expect(tokens).toEqual([0, 1, 2, 3].map((number) => tokens[0]! + number));
    expect(verbs(a)).toEqual(['acquire']);
    expect(eventsOf(a, 'acquired').map(({ mode }) => mode)).toEqual(Array(4).fill('read'));
  });

  it('release it in Redis once: on the release of the last one', async () => {
    const leases = await Promise.all([read(), read(), read()]);
    await leases[0]!.release();
    await leases[2]!.release();
    expect(verbs(a)).toEqual(['acquire']);
    expect(leases[1]!.isHeld()).toBe(true);
    await leases[1]!.release();
    expect(verbs(a)).toEqual(['acquire', 'release']);
    expect(eventsOf(a, 'released')).toHaveLength(3);
    await expectNothingLeft();
  });

  it.each([0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 9])(
    'are all let in, also where the time to share ends between two looks at the clock (%s ms apart)',
    async (stepMs) => {
      const writer = await b.locks.acquire('stock', WRITE);
      const waiting = Array.from({ length: 12 }, () => track(read()));
      await settle();
      world.clock.stepMs = stepMs;
      await writer.release();
      await world.clock.advance(2_000);
      world.clock.stepMs = 0;
      expect(waiting.map(({ state }) => state)).toEqual(Array(12).fill('fulfilled'));
    },
  );

  it.each<[string, LockOptions]>([
    ['with watchdog: false', { watchdog: false }],
    ['with a maxHoldMs', { maxHoldMs: 60_000 }],
    ['with another leaseMs', { leaseMs: 20_000 }],
    ['with strictOrder', { strictOrder: true }],
  ])('have a lease each %s', async (_, other) => {
    const [one, two] = [await read(), await read(other)];
    const three = await a.locks.acquire('other', { ...READ, ...other });
    const four = await a.locks.acquire('other', READ);
    expect(a.store.sent('acquire')).toHaveLength(4);
    expect((await b.locks.inspect('stock')).holders).toHaveLength(2);
    await one.release();
    expect(await two.verify()).toBe(true);
    await Promise.all([two.release(), three.release(), four.release()]);
    await expectNothingLeft();
  });

  it.each([
    [9, 1],
    [10, 2],
  ])('share for 10 ms: a reader %i ms later makes it %i in Redis', async (laterMs, members) => {
    await read();
    await world.clock.advance(laterMs);
    await read();
    expect((await b.locks.inspect('stock')).holders).toHaveLength(members);
  });

  describe('lose it together', () => {
    it('if Redis reports that it is gone', async () => {
      const leases = await Promise.all([read(), read(), read()]);
      const signals = leases.map(({ signal }) => signal);
      await b.locks.operators.forceRelease('stock', { fencingToken: leases[1]!.fencingToken });
      await world.clock.advance(10_000);
      expect(signals.map(({ reason }) => (reason as { reason: string }).reason)).toEqual(Array(3).fill('takenOver'));
      expect(eventsOf(a, 'lost')).toHaveLength(3);
      await Promise.all(leases.map((lease) => lease.release()));
      await expectNothingLeft();
    });

    it('if it is not renewed in time', async () => {
      const leases = await Promise.all([read(), read(), read()]);
      const signals = leases.map(({ signal }) => signal);
      a.store.fates.renew = lostOnTheWay;
      await world.clock.advance(29_697);
      expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false]);
      await world.clock.advance(1);
      expect(signals.map(({ reason }) => (reason as { reason: string }).reason)).toEqual(Array(3).fill('notRenewed'));
      await Promise.all(leases.map((lease) => lease.release()));
      await expectNothingLeft();
    });

    it('if the process was blocked, whoever notices first; later readers ask Redis', async () => {
      const [one, two] = await Promise.all([read(), read()]);
      world.clock.block(40_000);
      expect(one!.isHeld()).toBe(false);
      expect(two!.remainingMs()).toBe(0);
      const next = await read();
      expect(a.store.sent('acquire')).toHaveLength(2);
      await Promise.all([one!.release(), two!.release()]);
      expect(await next.verify()).toBe(true);
      await next.release();
      await expectNothingLeft();
    });
  });

  describe('beside a local writer', () => {
    it('make it queue in Redis at once', async () => {
      await read();
      const writer = track(a.locks.acquire('stock', WRITE));
      await settle();
      expect([writer.state, world.server.listWaiters('stock')]).toEqual(['pending', ['a']]);
    });

    it('are not joined by later readers', async () => {
      const first = await read();
      const writer = track(a.locks.acquire('stock', WRITE));
      const later = track(read());
      await settle();
      expect([writer.state, later.state]).toEqual(['pending', 'pending']);
      await first.release();
      await settle();
      expect([writer.state, later.state]).toEqual(['fulfilled', 'pending']);
      await writer.value.release();
      await settle();
      expect(later.value.fencingToken).toBeGreaterThan(writer.value.fencingToken);
      await later.value.release();
      await expectNothingLeft();
    });

    it.each(['aborts', 'runs out of time'])('are admitted together, when it %s', async (how) => {
      const first = await read();
      const controller = new AbortController();
      const given = how === 'aborts' ? { signal: controller.signal } : { waitMs: 50 };
      const writer = track(a.locks.acquire('stock', { ...WRITE, ...given }));
      const later = [track(read()), track(read())];
      await settle();
      if (how === 'aborts') controller.abort();
      else await world.clock.advance(50);
      await settle();
      expect([writer.state, ...later.map(({ state }) => state)]).toEqual(['rejected', 'fulfilled', 'fulfilled']);
      expect(world.server.listWaiters('stock')).toEqual([]);
      await Promise.all([first.release(), ...later.map(({ value }) => value.release())]);
      await expectNothingLeft();
    });
  });

  it('are each granted by one message, when a writer elsewhere leaves', async () => {
    const writer = await b.locks.acquire('stock', WRITE);
    const readers = [track(read()), track(read()), track(read())];
    await settle();
    expect(world.server.listWaiters('stock')).toEqual(['a']);
    await writer.release();
    await settle();
    expect(readers.map(({ state }) => state)).toEqual(Array(3).fill('fulfilled'));
    expect(a.store.grants).toHaveLength(1);
    expect(a.store.sent('acquire')).toHaveLength(1);
  });

  it('return a grant that arrives after the last of them has given up', async () => {
    const late = gate();
    a.store.next('acquire', executedWhen(late.opened));
    const controller = new AbortController();
    const reading = track(read({ signal: controller.signal }));
    await settle();
    controller.abort();
    await settle();
    late.open();
    await settle();
    expect(reading.state).toBe('rejected');
    await expectNothingLeft();
  });

  describe('and extend()', () => {
    it('never cuts the leases of the others', async () => {
      const [one, two] = await Promise.all([read(), read()]);
      const before = two!.remainingMs();
      await one!.extend(1_000);
      expect(two!.remainingMs()).toBeGreaterThanOrEqual(before);
      await world.clock.advance(20_000);
      expect([one!.isHeld(), two!.isHeld()]).toEqual([true, true]);
    });

    it('cuts the lease of a single reader', async () => {
      const [one, two] = await Promise.all([read(), read()]);
      await two!.release();
      await one!.extend(1_000);
      expect(one!.remainingMs()).toBe(1_000 - 12);
    });
  });
});

const HELP = 'docs/guide/several-resources.md#what-can-still-deadlock';

describe('a call that times out inside of work under a lease', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  /** Takes them one inside the other. */
  const nested = (names: readonly string[], options: LockOptions = {}, { locks } = a): Promise<unknown> => {
    const [name, ...rest] = names;
    return locks.using(name!, options, async () => {
      await settle();
      if (rest.length > 0) await nested(rest, options, { locks } as Instance);
    });
  };
  const errorOf = ({ error }: Tracked<unknown>) => error as LockTimeoutError;

  it('names its own locks, and that the holder may wait for them', async () => {
    const b = world.instance('b');
    await b.locks.acquire('account:y');
    const call = track(nested(['account:x', 'account:y'], { waitMs: 4_000 }));
    await world.clock.advance(10);
    await world.clock.advance(4_000);
    expect(errorOf(call).heldByCaller).toEqual({ resources: ['account:x'] });
    expect(errorOf(call).message).toBe(
      '"account:y" has been held by b for 4 s; waited 4 s (1st in line). This call also holds "account:x". ' +
        `If the holder waits for that, it is a deadlock: see ${HELP}. Otherwise raise waitMs, hold the lock for ` +
        'less time, or try again later.',
    );
  });

  it('reports a deadlock to both calls if the holder is a waiting call of its process', async () => {
    const calls = [
      track(nested(['account:x', 'account:y'], { waitMs: 4_000 })),
      track(nested(['account:y', 'account:x'], { waitMs: 4_000 })),
    ];
    await world.clock.advance(10);
    await world.clock.advance(4_000);
    const error = errorOf(calls[0]!);
    expect(error.message).toMatch(
      new RegExp(
        '^"account:y" has been held by another call of this process for 4 s; waited 4 s behind other calls of this process\\. This ' +
          'call also holds "account:x", and the holder waits for that, directly or through other calls: a deadlock, which a ' +
          'longer wait cannot resolve\\. This call holds "account:x" and wants "account:y" \\(.*local-queue\\.test\\.ts:\\d+:\\d+\\)?\\); another call of this process ' +
          'holds "account:y" and wants "account:x" \\(.*local-queue\\.test\\.ts:\\d+:\\d+\\)?\\)\\. Acquire all of them in one ' +
          `call: \\["account:x", "account:y"\\]\\. See ${HELP}\\.$`,
      ),
    );
    const site = expect.stringContaining('local-queue.test.ts');
    const of = { instanceId: 'a', isThisProcess: true, group: 'account', callSite: site };
    const deadlock = [
      { ...of, holds: 'account:x', wants: 'account:y' },
      { ...of, holds: 'account:y', wants: 'account:x' },
    ];
    expect(error.heldByCaller).toEqual({ resources: ['account:x'], deadlock });
    expect(error.cause).toMatchObject({ name: 'Deadlock', calls: deadlock });
    expect((error.cause as Error).message).toMatch(
      /^"a" holds "account:x" and wants "account:y" .*; another call of this/,
    );
    expect(errorOf(calls[1]!).heldByCaller).toEqual({
      resources: ['account:y'],
      deadlock: deadlock.toReversed(),
    });
  });

  it('omits a lease that has expired, or that the call did not take inside of', async () => {
    const b = world.instance('b');
    await b.locks.acquire('y');
    await a.locks.acquire('x');
    const outside = track(a.locks.acquire('y', { waitMs: 1_000 }));
    const fixed = track(
      a.locks.using('w', { watchdog: false, leaseMs: 500 }, () => a.locks.acquire('y', { waitMs: 1_000 })),
    );
    await world.clock.advance(1_100);
    for (const call of [outside, fixed]) expect(errorOf(call).message).not.toContain('This call holds');
  });

  it('reports it for several resources, too', async () => {
    const b = world.instance('b');
    await b.locks.acquire('z');
    const call = track(a.locks.using('x', {}, () => a.locks.acquire(['y', 'z'], { waitMs: 2_000 })));
    await world.clock.advance(2_100);
    expect(errorOf(call).code).toBe('LOCK_TIMEOUT');
    expect(errorOf(call).heldByCaller).toEqual({ resources: ['x'] });
  });

  it('counts the locks of a call for several resources, though it is not nested in another one', async () => {
    void nested(['y', 'x'], { waitMs: 9_000 });
    const composite = track(a.locks.acquire(['x', 'y'], { waitMs: 4_000 }));
    await world.clock.advance(5_000);
    expect(errorOf(composite).heldByCaller).toEqual({ resources: ['x'], deadlock: expect.any(Array) });
  });

  it('reports it for a call that polls by a retry strategy', async () => {
    const retry = { next: () => 100 };
    const polling = track(nested(['x', 'y'], { waitMs: 3_000, retry }));
    void nested(['y', 'x'], { waitMs: 9_000 });
    await world.clock.advance(4_000);
    expect(errorOf(polling).heldByCaller).toEqual({ resources: ['x'], deadlock: expect.any(Array) });
  });

  it('reports no deadlock for permits of a semaphore: other holders may release theirs', async () => {
    const permits = (work: () => Promise<unknown>) =>
      a.locks.semaphore('s', { permits: 1 }).using({ waitMs: 2_000 }, work);
    const calls = [
      track(permits(() => a.locks.acquire('x', { waitMs: 2_000 }))),
      track(a.locks.using('x', {}, () => permits(async () => {}))),
    ];
    await world.clock.advance(3_000);
    expect(calls.map((call) => errorOf(call).heldByCaller)).toEqual([{ resources: ['s'] }, { resources: ['x'] }]);
  });
});
