import { LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import { LockAbortedError } from '../../../lib/kernel/api/errors.js';
import { type LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, repliedWhen } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

describe('acquiring', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('takes a free resource with one command', async () => {
    const lease = await a.locks.acquire('stock');
    expect(lease).toMatchObject({ resource: 'stock', resources: ['stock'], mode: 'exclusive' });
    expect(lease.isHeld()).toBe(true);
    expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire']);
  });

  it('sends the command before it sets an alarm for it, because the store is at work by then', async () => {
    const send = a.store.acquire.bind(a.store);
    const alarms: number[] = [];
    a.store.acquire = (...request) => {
      alarms.push(a.locks.stats().alarms);
      return send(...request);
    };
    const acquiring = a.locks.acquire('stock');
    alarms.push(a.locks.stats().alarms);
    expect(alarms).toEqual([0, 1]);
    await (await acquiring).release();
  });

  it('takes its command back if an observer of the command ends the call', async () => {
    const send = a.store.acquire.bind(a.store);
    const stop = new AbortController();
    a.store.acquire = (...request) => {
      const answer = send(...request);
      stop.abort();
      return answer;
    };
    const acquiring = track(a.locks.acquire('stock', { signal: stop.signal }));
    await settle();
    expect(acquiring.error).toBeInstanceOf(LockAbortedError);
    // Once more when the answer says that it was granted: the release may have been executed before.
    expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'release', 'release']);
    expect(a.locks.stats()).toMatchObject({ resources: 0, orphanReleases: 0, alarms: 0 });
    expect(world.server.isEmpty).toBe(true);
  });

  it('waits no longer than waitMs', async () => {
    await a.locks.acquire('stock');
    const waiting = track(b.locks.acquire('stock', { waitMs: 2_500 }));
    await world.clock.advance(2_499);
    expect(waiting.state).toBe('pending');
    await world.clock.advance(1);
    expect(waiting.error).toBeInstanceOf(LockTimeoutError);
    expect(waiting.error).toMatchObject({
      code: 'LOCK_TIMEOUT',
      resource: 'stock',
      waitedMs: 2_500,
      lastAttempt: 'busy',
    });
    expect((waiting.error as Error).message).toContain(
      '"stock" has been held by a for 2.5 s; waited 2.5 s (1st in line)',
    );
  });

  it('counts the lease from the moment the command was sent, not from the reply', async () => {
    const reply = gate();
    a.store.next('acquire', repliedWhen(reply.opened));
    const acquiring = track(a.locks.acquire('stock', { leaseMs: 1_000, watchdog: false }));
    await world.clock.advance(400);
    reply.open();
    await settle();
    expect(acquiring.value.remainingMs()).toBe(1_000 - 400 - 12); // the drift allowance is 1 % + 2 ms
  });

  it('rejects a grant that arrives after its lease has expired, and asks again', async () => {
    const reply = gate();
    a.store.next('acquire', repliedWhen(reply.opened));
    const acquiring = track(a.locks.acquire('stock', { leaseMs: 100, attemptTimeoutMs: 500 }));
    await world.clock.advance(99);
    reply.open();
    await settle();
    expect(acquiring.state).toBe('pending');
    await world.clock.advance(100);
    expect(acquiring.value.isHeld()).toBe(true);
    expect(a.store.sent('acquire')).toHaveLength(2);
    const [first, second] = a.store.sent('acquire');
    expect(second!.owner).toBe(first!.owner);
  });

  describe('tryAcquire', () => {
    it('returns null at once if the resource is held', async () => {
      await a.locks.acquire('stock');
      const trying = track(b.locks.tryAcquire('stock'));
      await settle();
      expect(trying.value).toBeNull();
      expect(b.store.sent('acquire')).toHaveLength(1);
      expect(world.server.listWaiters('stock')).toEqual([]);
    });

    it.each<LockOptions | undefined>([
      undefined,
      {},
      { waitMs: undefined },
      { retry: { next: () => 10 } },
      { waitMs: 0, retry: { next: () => 10 } },
    ])('does not wait with %j, whatever the waitMs of the module', async (options) => {
      await a.locks.acquire('stock');
      const c = world.instance('c', { defaults: { waitMs: 60_000 } });
      const trying = track(c.locks.tryAcquire('stock', options));
      await settle();
      expect(trying.value).toBeNull();
      expect(c.store.sent('acquire')).toHaveLength(1);
    });

    it.each([['stock'], [['other', 'stock']]])(
      'waits for %j as long as it is told to, and no longer',
      async (names) => {
        const held = await a.locks.acquire('stock');
        const trying = track(b.locks.tryAcquire(names, { waitMs: 200 }));
        await world.clock.advance(199);
        expect(trying.state).toBe('pending');
        await world.clock.advance(1);
        expect(trying.value).toBeNull();
        expect(eventsOf(b, 'notAcquired').at(-1)).toMatchObject({ error: { code: 'LOCK_TIMEOUT' } });
        await held.release();
        expect(world.server.isEmpty).toBe(true);
      },
    );

    it('joins the fair queue while it waits', async () => {
      const held = await world.instance('c').locks.acquire('stock');
      const order: string[] = [];
      const first = a.locks.tryAcquire('stock', { waitMs: 1_000, strictOrder: true }).then(async (lease) => {
        order.push('first');
        await lease?.release();
      });
      await settle();
      const second = b.locks.using('stock', undefined, () => void order.push('second'));
      await settle();
      const third = a.locks.tryAcquire('stock', { waitMs: 1_000 }).then((lease) => {
        order.push('third');
        return lease?.release();
      });
      await held.release();
      await Promise.all([first, second, third]);
      expect(order).toEqual(['first', 'second', 'third']);
    });

    it('polls by the retry strategy of the call, until that gives up', async () => {
      await a.locks.acquire('stock');
      const retry = { next: ({ attempt }: { attempt: number }) => (attempt < 3 ? 10 : null) };
      const trying = track(b.locks.tryAcquire('stock', { waitMs: 10_000, retry }));
      await world.clock.advance(20);
      expect(trying.value).toBeNull();
      expect(b.store.sent('acquire')).toHaveLength(3);
      expect(eventsOf(b, 'notAcquired')).toMatchObject([{ error: { code: 'LOCK_BUSY' } }]);
    });

    it('resolves to null if the queue is full', async () => {
      await a.locks.acquire('stock');
      track(b.locks.acquire('stock'));
      expect(await b.locks.tryAcquire('stock', { waitMs: 1_000, maxWaiters: 1 })).toBeNull();
      expect(eventsOf(b, 'notAcquired')).toMatchObject([{ error: { code: 'LOCK_QUEUE_FULL' } }]);
    });

    it.each([0, 1_000])(
      'throws when the signal aborts or the application shuts down, with waitMs: %d',
      async (waitMs) => {
        await a.locks.acquire('stock');
        const signal = AbortSignal.abort();
        await expect(b.locks.tryAcquire('stock', { waitMs, signal })).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
        const controller = new AbortController();
        const trying = track(b.locks.tryAcquire('stock', { waitMs: 1_000, signal: controller.signal }));
        await settle();
        controller.abort();
        await settle();
        expect(trying.error).toMatchObject({ code: 'LOCK_ABORTED' });
        const waiting = track(b.locks.tryAcquire('stock', { waitMs: 1_000 }));
        await b.locks.shutdown(0);
        expect(waiting.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
        await expect(b.locks.tryAcquire('stock', { waitMs })).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
      },
    );

    it('throws if the resource is a semaphore: waiting would not help', async () => {
      await a.locks.semaphore('stock', { permits: 2 }).acquire();
      for (const waitMs of [0, 1_000]) {
        await expect(b.locks.tryAcquire('stock', { waitMs })).rejects.toMatchObject({ code: 'LOCK_MODE_MISMATCH' });
      }
    });

    it.each([-1, 1.5, '200', null])('refuses waitMs: %p before anything is sent', async (waitMs) => {
      const trying = b.locks.tryAcquire('stock', { waitMs: waitMs as number });
      await expect(trying).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'waitMs' });
      expect(b.store.commands).toEqual([]);
    });

    it('throws if Redis does not answer, which is not the same as busy', async () => {
      a.store.next('acquire', executedWhen(gate().opened));
      const trying = track(a.locks.tryAcquire('stock'));
      await world.clock.advance(1_000);
      expect(trying.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'timeout' });
    });
  });

  describe("with the caller's AbortSignal", () => {
    it('stops waiting at once, with the reason as cause', async () => {
      await a.locks.acquire('stock');
      const controller = new AbortController();
      const waiting = track(b.locks.acquire('stock', { signal: controller.signal }));
      await world.clock.advance(1_500);
      controller.abort('client went away');
      await settle();
      expect(waiting.error).toBeInstanceOf(LockAbortedError);
      expect(waiting.error).toMatchObject({ code: 'LOCK_ABORTED', cause: 'client went away' });
      expect(world.server.listWaiters('stock')).toEqual([]);
    });

    it('sends nothing if it has already aborted', async () => {
      const aborted = track(a.locks.acquire('stock', { signal: AbortSignal.abort() }));
      await settle();
      expect(aborted.error).toBeInstanceOf(LockAbortedError);
      expect(a.store.commands).toEqual([]);
    });
  });
});
