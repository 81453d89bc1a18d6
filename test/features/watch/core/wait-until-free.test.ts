import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { LockTimeoutError } from '../../../../lib/kernel/api/busy-errors.js';
import {
  InvalidLockOptionsError,
  InvalidResourceError,
  LockAbortedError,
  LockShutdownError,
  LockUnavailableError,
} from '../../../../lib/kernel/api/errors.js';
import { LockReentryError } from '../../../../lib/kernel/api/lease-errors.js';
import type { LockStore } from '../../../../lib/kernel/store/lock-store.js';
import { MemoryLockStore } from '../../../../lib/memory/memory-lock-store.js';
import { rejection } from '../../../support/expect/eventually.js';
import { gate, track, type Tracked } from '../../../support/expect/tracked.js';
import { at, on, simulateWaits, type WaitSubject } from '../../../support/simulation/wait-simulation.js';
import { settle } from '../../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../../support/world/lock-world.js';
import {
  executedWhen,
  failing,
  type Fate,
  lostOnTheWay,
  repliedWhen,
  replyLost,
} from '../../../support/world/scripted-store.js';

/** The longest pause between two questions. */
const MAX_MS = 1_250;

describe('waitUntilFree', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const wait = (options?: object, { locks }: Instance = b) => locks.watches.waitUntilFree('stock', options);

  /** Nothing waits, nothing rings, and the server keeps nothing. */
  const expectNothingLeft = async () => {
    await settle();
    for (const { locks } of [a, b]) expect([locks.watches.size, locks.stats().alarms]).toEqual([0, 0]);
    expect(world.server.isEmpty).toBe(true);
  };

  it('resolves at once if the resource is free, with one request', async () => {
    await wait();
    await wait({ waitMs: 0 });
    expect(b.store.commands).toHaveLength(2);
    await expectNothingLeft();
  });

  it('resolves when the holder releases: by the message, without another request', async () => {
    const lease = await a.locks.acquire('stock');
    const waiting = track(wait());
    await settle();
    expect(waiting.state).toBe('pending');
    await lease.release();
    await settle();
    expect(waiting.state).toBe('fulfilled');
    expect(b.store.sent('watch')).toHaveLength(1);
    await expectNothingLeft();
  });

  describe('a message', () => {
    it('is accepted before the reply', async () => {
      const lease = await a.locks.acquire('stock');
      const answer = gate();
      b.store.next('watch', repliedWhen(answer.opened));
      const waiting = track(wait());
      await settle();
      await lease.release();
      await settle();
      expect(waiting.state).toBe('fulfilled');
      // That reply means "not free", and its watch has ended.
      const later = await a.locks.acquire('stock');
      answer.open();
      await settle();
      await later.release();
      await settle();
      expect(b.store.freedMessages).toHaveLength(1);
      await expectNothingLeft();
    });

    it('that is forged neither ends the wait nor causes a request', async () => {
      const lease = await a.locks.acquire('stock');
      const waiting = track(wait());
      await settle();
      for (const resource of ['stock', 'other']) {
        for (let mark = 0; mark < 1_000; mark++) b.store.deliverFreed({ resource, mark, isFor: () => false });
      }
      await settle();
      expect(waiting.state).toBe('pending');
      expect(b.store.sent('watch')).toHaveLength(1);
      await lease.release();
      await settle();
      expect(waiting.state).toBe('fulfilled');
    });

    it('from before the call is ignored: the resource may be held again', async () => {
      const lease = await a.locks.acquire('stock');
      const early = track(wait());
      await settle();
      b.store.isDeaf = true;
      await lease.release();
      const again = await a.locks.acquire('stock');
      await world.clock.advance(1);
      const late = track(wait());
      await settle();
      b.store.isDeaf = false;
      // Delivers the delayed message twice.
      for (const _ of [1, 2]) b.store.deliverFreed(b.store.freedMessages[0]!);
      await settle();
      expect([early.state, late.state]).toEqual(['fulfilled', 'pending']);
      await again.release();
      await settle();
      expect(late.state).toBe('fulfilled');
      await expectNothingLeft();
    });
  });

  it('is not ended by an old message, however many requests later it is repeated', async () => {
    const lease = await a.locks.acquire('stock');
    b.store.isDeaf = true;
    const first = track(wait({ waitMs: Infinity }));
    await settle();
    await lease.release();
    await a.locks.acquire('stock');
    const [old] = b.store.freedMessages;
    b.store.isDeaf = false;
    await world.clock.advance(1);
    const second = track(wait({ waitMs: Infinity }));
    b.store.deliverFreed(old!);
    await settle();
    // An hour is more questions than there are marks.
    for (let minute = 0; minute < 60; minute++) {
      await world.clock.advance(60_000);
      b.store.deliverFreed(old!);
      await settle();
    }
    expect(b.store.sent('watch').length).toBeGreaterThan(2_000);
    expect([first.state, second.state]).toEqual(['fulfilled', 'pending']);
  });

  it('detects a dead holder when its lease expires, even if that is soon', async () => {
    await a.locks.acquire('stock', { leaseMs: 5_000, watchdog: false });
    const waiting = track(wait());
    await world.clock.advance(4_990);
    expect(waiting.state).toBe('pending');
    await world.clock.advance(10 + MAX_MS);
    expect(waiting.state).toBe('fulfilled');

    await a.locks.acquire('stock', { leaseMs: 100, watchdog: false });
    const brief = track(wait());
    await world.clock.advance(100);
    expect(brief.state).toBe('pending');
    await world.clock.advance(26);
    expect(brief.state).toBe('fulfilled');
    await expectNothingLeft();
  });

  it('costs the store no more for a thousand calls than for one', async () => {
    const lease = await a.locks.acquire('stock');
    const waits = Array.from({ length: 1_000 }, () => track(wait({ waitMs: Infinity })));
    await world.clock.advance(5_000);
    const ofThousand = b.store.sent('watch').length;
    const alone = track(wait({}, a));
    await world.clock.advance(5_000);
    // One more, for waits that began while the first request was pending.
    expect(ofThousand).toBeLessThanOrEqual(a.store.sent('watch').length + 2);
    await lease.release();
    await settle();
    expect(b.store.freedMessages).toHaveLength(1);
    expect([...waits, alone].every(({ state }) => state === 'fulfilled')).toBe(true);
    await expectNothingLeft();
  });

  it('asks at once for a later call, but not for each: the lease may have ended in between', async () => {
    await world.instance('dead').locks.acquire('stock', { leaseMs: 60_000, watchdog: false });
    const first = track(wait());
    await world.clock.advance(500);
    world.server.lose('stock'); // as by DEL
    const second = track(wait());
    await world.clock.advance(1);
    expect([first.state, second.state]).toEqual(['fulfilled', 'fulfilled']);
    const lease = await a.locks.acquire('stock');
    b.store.commands.length = 0;
    const many = [];
    for (let time = 0; time < 1_000; time++) {
      many.push(track(wait()));
      await world.clock.advance(1);
    }
    expect(b.store.sent('watch').length).toBeLessThan(15);
    await lease.release();
    await settle();
    await world.clock.advance(100);
    expect(many.every(({ state }) => state === 'fulfilled')).toBe(true);
    await expectNothingLeft();
  });

  it.each([
    ['the reply is lost', replyLost],
    ['Redis refuses for the moment', failing('notExecuted')],
  ])('asks again if %s', async (_what, fate) => {
    const lease = await a.locks.acquire('stock');
    b.store.next('watch', fate, fate);
    const waiting = track(wait());
    await world.clock.advance(4_000);
    await lease.release();
    await world.clock.advance(MAX_MS);
    expect(waiting.state).toBe('fulfilled');
    await world.clock.advance(10_000);
    await expectNothingLeft();
  });

  it('asks at once on a new connection', async () => {
    const lease = await a.locks.acquire('stock');
    b.store.isDeaf = true;
    const waiting = track(wait());
    await settle();
    await lease.release();
    b.store.reconnect();
    await settle();
    expect(waiting.state).toBe('fulfilled');
  });

  it('ignores a reply that is older than the call', async () => {
    const answer = gate();
    b.store.next('watch', repliedWhen(answer.opened));
    const early = track(wait());
    await world.clock.advance(1);
    const lease = await a.locks.acquire('stock');
    const late = track(wait());
    answer.open();
    await settle();
    expect([early.state, late.state]).toEqual(['fulfilled', 'pending']);
    await lease.release();
    await settle();
    expect(late.state).toBe('fulfilled');
    await expectNothingLeft();
  });

  describe('ends with', () => {
    it('LockTimeoutError after waitMs, and ends its watch in the store', async () => {
      const lease = await a.locks.acquire('stock');
      const waiting = track(wait({ waitMs: 300 }));
      await world.clock.advance(300);
      expect(waiting.error).toBeInstanceOf(LockTimeoutError);
      expect(waiting.error).toMatchObject({ waitedMs: 300, attempts: 1, retryAfterMs: expect.any(Number) });
      expect(waiting.error).toMatchObject({ holderCount: 1, holders: [{ instanceId: 'a', isThisProcess: false }] });
      expect((waiting.error as Error).message).toContain('"stock" has been held by a for');
      expect(world.server.redis.keys()).not.toContain(world.server.keys.waiters('stock'));
      await lease.release();
      await expectNothingLeft();
    });

    it('LockUnavailableError if Redis does not answer at the end, and if it refuses', async () => {
      const lease = await a.locks.acquire('stock');
      b.store.fates.watch = lostOnTheWay;
      const silent = track(wait({ waitMs: 1_500 }));
      const look = track(wait({ waitMs: 0 }));
      await world.clock.advance(1_500);
      for (const { error } of [silent, look]) expect(error).toBeInstanceOf(LockUnavailableError);
      b.store.fates.watch = failing('refused', 'NOPERM');
      for (const waitMs of [0, 5_000]) {
        const error = await rejection(wait({ waitMs }));
        expect(error).toBeInstanceOf(LockUnavailableError);
        expect(error.message).toContain('NOPERM');
      }
      delete b.store.fates.watch;
      const gone = track(wait({ waitMs: 500 }));
      await settle();
      b.store.trouble = () => ({ failure: 'notExecuted', message: 'not connected', name: 'LockStoreError' }) as never;
      await world.clock.advance(500);
      expect(gone.error).toBeInstanceOf(LockUnavailableError);
      await lease.release();
      await expectNothingLeft();
    });

    it.each([0, 5_000])('LockAbortedError when the signal aborts, before or while it waits %i ms', async (waitMs) => {
      const lease = await a.locks.acquire('stock');
      const reason = new Error('enough');
      const given = AbortSignal.abort(reason);
      expect(await rejection(wait({ waitMs, signal: given }))).toMatchObject({ code: 'LOCK_ABORTED', cause: reason });
      expect(b.store.commands).toEqual([]);
      const controller = new AbortController();
      const answer = gate();
      b.store.next('watch', executedWhen(answer.opened));
      const waiting = track(wait({ waitMs, signal: controller.signal }));
      await settle();
      controller.abort(reason);
      await settle();
      expect(waiting.error).toBeInstanceOf(LockAbortedError);
      expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
      answer.open();
      await settle();
      expect(world.server.redis.keys()).not.toContain(world.server.keys.waiters('stock'));
      await lease.release();
      await expectNothingLeft();
    });

    it('LockShutdownError when the application shuts down, and from then on', async () => {
      const lease = await a.locks.acquire('stock');
      const waiting = track(wait());
      await settle();
      const shutdown = b.locks.shutdown(0);
      await settle();
      expect(waiting.error).toBeInstanceOf(LockShutdownError);
      expect(await rejection(wait())).toBeInstanceOf(LockShutdownError);
      expect(await rejection(wait({ waitMs: 0 }))).toBeInstanceOf(LockShutdownError);
      await shutdown;
      await lease.release();
      await expectNothingLeft();
    });

    it('the same for one call, while the others continue', async () => {
      const lease = await a.locks.acquire('stock');
      const controller = new AbortController();
      const [brief, stopped, patient] = [
        track(wait({ waitMs: 200 })),
        track(wait({ signal: controller.signal })),
        track(wait()),
      ];
      await settle();
      controller.abort();
      await world.clock.advance(200);
      expect([brief, stopped, patient].map(({ state }) => state)).toEqual(['rejected', 'rejected', 'pending']);
      await lease.release();
      await settle();
      expect(patient.state).toBe('fulfilled');
      await expectNothingLeft();
    });
  });

  describe('in a context that holds the resource itself', () => {
    it('a call would wait for itself, and is refused', async () => {
      await b.locks.using('stock', { mode: 'read' }, async () => {
        b.store.commands.length = 0;
        for (const waitMs of [0, 1_000]) {
          const error = await rejection(wait({ waitMs }));
          expect(error).toBeInstanceOf(LockReentryError);
          expect(error.message).toContain('"stock" (mode read) and would wait for itself');
        }
        expect(b.store.commands).toEqual([]);
        await b.locks.watches.waitUntilFree('other');
      });
      await expectNothingLeft();
    });

    it('a call would wait for its own permits, or for a part of its lease, and is refused', async () => {
      await b.locks.semaphore('stock', { permits: 3 }).using(async () => {
        expect(await rejection(wait())).toBeInstanceOf(LockReentryError);
      });
      await b.locks.using(['stock', 'orders'], undefined, async () => {
        expect(await rejection(wait())).toBeInstanceOf(LockReentryError);
      });
    });

    it('a call waits for a resource that another context of the process holds, or that it has lost itself', async () => {
      const lease = await b.locks.acquire('stock');
      const waiting = track(wait());
      await settle();
      await lease.release();
      await settle();
      expect(waiting.state).toBe('fulfilled');
      await b.locks.using('stock', { leaseMs: 100, watchdog: false, onLost: 'ignore' }, async () => {
        await world.clock.advance(110);
        await wait();
      });
    });
  });

  it('waits for the run of a job and for a leadership, whose locks no call can take', async () => {
    const owner = { resource: 'leader:mailer', id: `${a.store.clientId}/secret`, mode: 'exclusive' as const };
    await a.store.acquire(owner, 10_000);
    const waiting = track(b.locks.watches.waitUntilFree('leader:mailer'));
    await settle();
    expect(waiting.state).toBe('pending');
    await a.store.release(owner);
    await settle();
    expect(waiting.state).toBe('fulfilled');
  });

  it.each([
    ['a name that is too long', 'x'.repeat(513), undefined, 'resource', InvalidResourceError],
    ['one name in an array', ['stock'], undefined, 'resource', InvalidLockOptionsError],
    ['half a millisecond', 'stock', { waitMs: 0.5 }, 'waitMs', InvalidLockOptionsError],
    ['an option of acquire', 'stock', { leaseMs: 1_000 }, 'leaseMs', InvalidLockOptionsError],
    ['options that are none', 'stock', 500, 'waitUntilFree', InvalidLockOptionsError],
  ])('refuses %s before anything is sent', async (_what, name, options, option, Kind) => {
    const error = await rejection(b.locks.watches.waitUntilFree(name, options as object));
    expect(error).toBeInstanceOf(Kind);
    expect(error).toMatchObject({ option });
    expect(b.store.commands).toEqual([]);
  });

  it('explains the meaning of several names, and the alternatives', async () => {
    const { message } = await rejection(b.locks.watches.waitUntilFree(['a', 'b']));
    expect(message).toContain('Promise.all()');
    expect(message).toContain('acquire them');
  });
});

const course = fc.record({
  holds: fc.array(
    fc.record({
      at,
      on,
      holdMs: fc.oneof(fc.nat(1_500), fc.nat(200)),
      mode: fc.constantFrom('exclusive' as const, 'read'),
    }),
    { maxLength: 12 },
  ),
  /** Holders that die. */
  deaths: fc.array(fc.record({ at, leaseMs: fc.integer({ min: 50, max: 2_000 }) }), { maxLength: 3 }),
});

/** A resource that others hold, and that processes die with. */
const RESOURCE: WaitSubject<typeof course extends fc.Arbitrary<infer T> ? T : never> = {
  course,
  troubles: ['watch', 'slow', 'slow', 'late', 'late', 'forge', 'replay'],
  open({ holds, deaths }, look) {
    const world = new LockWorld();
    const { clock, server } = world;
    const instances = ['a', 'b', 'c'].map((name) => world.instance(name));
    const ghost = new MemoryLockStore({ instanceId: 'ghost', server });
    for (const { store } of instances) lookAtEachStepOf(Reflect.get(store, 'inner') as LockStore, look);
    lookAtEachStepOf(ghost, look);
    const pause = (ms: number) => new Promise<void>((resolve) => clock.setTimer(resolve, ms));
    const held: Tracked<void>[] = [];
    const hold = (on: number, mode: 'exclusive' | 'read', holdMs: number): void => {
      const { locks } = instances[on]!;
      held.push(track(locks.using('stock', { mode, waitMs: Infinity }, () => pause(holdMs))));
    };
    return {
      clock,
      events: [
        ...holds.map(({ at, on, holdMs, mode }) => ({ at, run: () => hold(on, mode, holdMs) })),
        ...deaths.map(({ at, leaseMs }, index) => {
          const owner = { resource: 'stock', id: `${ghost.clientId}/${index}`, mode: 'exclusive' as const };
          return { at, run: () => void ghost.acquire(owner, leaseMs) };
        }),
      ],
      stores: instances.map(({ store }) => store),
      isThere: () => !server.resources().includes('stock'),
      wait: (on, options) => instances[on]!.locks.watches.waitUntilFree('stock', options),
      trouble(what, on, fate, lastingMs) {
        const { store } = instances[on]!;
        const replay = (): void => {
          for (const message of store.freedMessages) store.deliverFreed(message);
        };
        const slow: Fate = async (execute) => {
          const reply = await execute();
          await pause(lastingMs / 3);
          return reply;
        };
        switch (what) {
          case 'watch':
          case 'slow':
            store.fates.watch = what === 'slow' ? slow : fate;
            return () => void delete store.fates.watch;
          case 'late':
            store.isDeaf = true;
            return () => {
              store.isDeaf = false;
              replay();
            };
          case 'forge':
            store.deliverFreed({ resource: 'stock', mark: 0, isFor: () => false });
            return () => {};
          default:
            replay();
            return () => {};
        }
      },
      // In the end it is released.
      conclude: () => clock.advance(60_000),
      async expectNothingLeft() {
        for (const { state } of held) expect(state).toBe('fulfilled');
        for (const { locks } of instances) expect([locks.watches.size, locks.stats().alarms]).toEqual([0, 0]);
        expect(server.isEmpty).toBe(true);
      },
    };
  },
};

function lookAtEachStepOf(store: LockStore, look: () => void): void {
  for (const verb of ['acquire', 'rotate', 'release', 'renew', 'watch'] as const) {
    const execute = store[verb].bind(store) as (...args: unknown[]) => Promise<never>;
    store[verb] = (...args: unknown[]) => {
      look();
      const reply = execute(...args);
      look();
      return reply;
    };
  }
}

it('waitUntilFree ends if the resource was free during the wait, never otherwise, and leaves nothing behind', async () => {
  const { plans, resolved, inVain } = await simulateWaits(RESOURCE);
  expect(resolved).toBeGreaterThan(plans / 2);
  expect(inVain).toBeGreaterThan(plans / 4);
});
