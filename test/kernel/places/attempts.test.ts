import { LockBusyError, LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { fixedInterval, type RetryState } from '../../../lib/kernel/api/retry.js';
import { AttemptLog } from '../../../lib/kernel/store/ask.js';
import { PlaceKeeper } from '../../../lib/kernel/places/place-keeper.js';
import type { QueuedWaiter } from '../../../lib/kernel/places/place.js';
import type { LockStore } from '../../../lib/kernel/store/lock-store.js';
import { type Alarm, Alarms } from '../../../lib/kernel/util/alarms.js';
import { gate, track, type Tracked } from '../../support/expect/tracked.js';
import { FakeClock, settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, failing, lostOnTheWay, replyLost, ScriptedHearing } from '../../support/world/scripted-store.js';

describe('attempts', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  describe('with a retry strategy', () => {
    it('calls next() of the user with the state of the wait', async () => {
      await a.locks.acquire('stock', { leaseMs: 5_000, watchdog: false });
      const states: RetryState[] = [];
      const next = (state: RetryState) => {
        states.push(state);
        return states.length < 3 ? 250 : null;
      };
      const polling = track(b.locks.acquire('stock', { retry: { next } }));
      await world.clock.advance(1_000);
      expect(states).toMatchObject([
        { attempt: 1, elapsedMs: 0, lastAttempt: 'busy', holderTtlMs: 5_000 },
        { attempt: 2, elapsedMs: 250, lastAttempt: 'busy', holderTtlMs: 4_750 },
        { attempt: 3, elapsedMs: 500, lastAttempt: 'busy', holderTtlMs: 4_500 },
      ]);
      expect(polling.error).toBeInstanceOf(LockBusyError);
    });

    it.each([['soon'], [-1], [NaN], [Infinity], [undefined]])('refuses a pause of %p', async (pause) => {
      await a.locks.acquire('stock');
      const retry = { next: () => pause as number };
      await expect(b.locks.acquire('stock', { retry })).rejects.toMatchObject({
        code: 'INVALID_LOCK_OPTIONS',
        option: 'retry',
      });
    });

    it('rethrows an error of a strategy, and leaves nothing behind', async () => {
      await a.locks.acquire('stock');
      const bug = new TypeError('bug in my strategy');
      const retry = {
        next(): number {
          throw bug;
        },
      };
      await expect(b.locks.acquire('stock', { retry })).rejects.toBe(bug);
      await settle();
      expect(b.store.sent('release')).toEqual([]);
    });
  });

  describe('report the last outcome when they run out', () => {
    const retry = fixedInterval({ intervalMs: 10, maxAttempts: 3 });

    it('busy', async () => {
      await a.locks.acquire('stock');
      const polling = track(b.locks.acquire('stock', { retry }));
      await world.clock.advance(100);
      expect(polling.error).toBeInstanceOf(LockBusyError);
      expect(polling.error).toMatchObject({ lastAttempt: 'busy', attempts: 3 });
      expect((polling.error as Error).message).toContain('3 attempts');
    });

    it('timed out', async () => {
      b.store.fates.acquire = lostOnTheWay;
      const polling = track(b.locks.acquire('stock', { retry, attemptTimeoutMs: 200 }));
      await world.clock.advance(1_000);
      expect(polling.error).toBeInstanceOf(LockUnavailableError);
      expect(polling.error).toMatchObject({ lastAttempt: 'timeout', operation: 'acquire' });
      expect((polling.error as Error).message).toContain('no answer within 200 ms');
    });

    it('failed', async () => {
      b.store.fates.acquire = failing('notExecuted', 'LOADING Redis is loading');
      const polling = track(b.locks.acquire('stock', { retry }));
      await world.clock.advance(100);
      expect(polling.error).toBeInstanceOf(LockUnavailableError);
      expect(polling.error).toMatchObject({ lastAttempt: 'failed' });
      expect((polling.error as Error).message).toContain('LOADING Redis is loading');
    });
  });

  describe('that fail', () => {
    it('are repeated until waitMs has passed if Redis may recover', async () => {
      a.store.next('acquire', failing('notExecuted'), failing('unknown'), failing('notExecuted'));
      const acquiring = track(a.locks.acquire('stock'));
      await world.clock.advance(1_000);
      expect(acquiring.value.isHeld()).toBe(true);
      expect(a.store.sent('acquire')).toHaveLength(4);
    });

    it('are not repeated if Redis refuses: the error is thrown at once', async () => {
      a.store.fates.acquire = failing('refused', 'NOPERM no permission');
      const acquiring = track(a.locks.acquire('stock'));
      await settle();
      expect(acquiring.error).toBeInstanceOf(LockUnavailableError);
      expect((acquiring.error as Error).message).toContain('NOPERM no permission');
      expect(a.store.sent('acquire')).toHaveLength(1);
    });

    it('end in LockUnavailableError if Redis never answered within waitMs', async () => {
      a.store.fates.acquire = failing('notExecuted', 'not connected');
      const acquiring = track(a.locks.acquire('stock', { waitMs: 3_000 }));
      await world.clock.advance(3_000);
      expect(acquiring.error).toBeInstanceOf(LockUnavailableError);
      expect((acquiring.error as Error).message).toContain('not connected');
      expect(a.store.sent('acquire').length).toBeLessThan(20);
    });

    it('do not hide a local holder from a call whose turn comes in the last moment', async () => {
      const held = await a.locks.acquire('stock', { leaseMs: 60_000, strictOrder: true });
      const acquiring = track(a.locks.acquire('stock', { waitMs: 1_000, leaseMs: 60_000, strictOrder: true }));
      await world.clock.advance(998);
      a.store.fates.rotate = lostOnTheWay;
      track(held.release());
      await world.clock.advance(2);
      expect(a.store.sent('rotate')).toHaveLength(1);
      expect(acquiring.error).toBeInstanceOf(LockTimeoutError);
      expect(acquiring.error).toMatchObject({ lastAttempt: 'busy' });
    });
  });

  describe('that time out', () => {
    it('leave no orphan lock if the command was executed and its reply lost', async () => {
      a.store.fates.acquire = replyLost;
      const acquiring = track(a.locks.acquire('stock', { waitMs: 0, attemptTimeoutMs: 200 }));
      await world.clock.advance(199);
      expect(world.server.isEmpty).toBe(false);
      await world.clock.advance(1);
      expect(acquiring.state).toBe('rejected');
      expect(world.server.isEmpty).toBe(true);
      expect(a.store.sent('release')).toMatchObject([{ owner: a.store.sent('acquire')[0]!.owner }]);
    });

    it('withdraw when the caller gives up in the middle of a command', async () => {
      const arrival = gate();
      a.store.next('acquire', executedWhen(arrival.opened));
      a.store.next('release', executedWhen(arrival.opened)); // on the same connection, behind it
      const controller = new AbortController();
      const acquiring = track(a.locks.acquire('stock', { signal: controller.signal }));
      await settle();
      controller.abort();
      await settle();
      expect(acquiring.state).toBe('rejected');
      arrival.open();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('return a grant that arrives after the release that was to withdraw them', async () => {
      const arrival = gate();
      a.store.next('acquire', executedWhen(arrival.opened)); // the script was not loaded, and is sent once more
      const controller = new AbortController();
      const acquiring = track(a.locks.acquire('stock', { signal: controller.signal }));
      await settle();
      controller.abort();
      await settle();
      expect(acquiring.state).toBe('rejected');
      expect(a.store.sent('release')).toHaveLength(1);
      arrival.open();
      await settle();
      expect(a.store.sent('release')).toHaveLength(2);
      expect(world.server.isEmpty).toBe(true);
    });
  });
});

/** A third of the lease, and the jitter adds nothing. */
const PERIOD_MS = 1_000;

class NotedAlarms extends Alarms {
  readonly noted: Alarm[] = [];

  override set(alarm: Alarm, at: number): void {
    this.noted.push(alarm);
    super.set(alarm, at);
  }

  override cancel(alarm: Alarm): void {
    this.noted.push(alarm);
    super.cancel(alarm);
  }
}

describe('a place whose waiter is granted', () => {
  let clock: FakeClock;
  let alarms: NotedAlarms;
  let keeper: PlaceKeeper;
  let hearing: ScriptedHearing;
  let begin: number;
  /** The places that each command kept, with its time. */
  let kept: [number, string][];

  beforeEach(() => {
    clock = new FakeClock();
    begin = clock.now();
    alarms = new NotedAlarms(clock);
    hearing = new ScriptedHearing();
    kept = [];
    const store = {
      hearing,
      fenceOf: (resource: string) => resource.split('/')[0],
      keepPlaces: (places) => {
        kept.push([clock.now() - begin, places.map(({ waiter }) => waiter.resource).join()]);
        return Promise.resolve(places.map(() => ({ status: 'kept' as const, ttlMs: 60_000, place: 1 })));
      },
    } as Partial<LockStore> as LockStore;
    keeper = new PlaceKeeper({ store, clock, random: { fraction: () => 0 } as never, alarms });
  });

  /** Its place is kept from now on. */
  function enter(resource: string): QueuedWaiter {
    const waiter: QueuedWaiter = {
      owner: { resource, id: 'an owner', mode: 'exclusive' },
      call: { options: { leaseMs: 3 * PERIOD_MS, attemptTimeoutMs: 500 } },
      log: new AttemptLog(),
      lossesBefore: keeper.losses,
      newsDueAt: () => Infinity,
      onKept: (_, sentAt, now) => void keeper.keep(waiter, sentAt, now, Infinity),
      notKept: () => {},
      ask: () => {},
    };
    expect(keeper.keep(waiter, clock.now(), clock.now(), Infinity)).toBe(true);
    return waiter;
  }

  it('keeps the alarm while others wait, and it rings for those', async () => {
    enter('a/waits');
    await clock.advance(100);
    alarms.noted.length = 0;
    for (let turn = 0; turn < 20; turn++) keeper.leave(enter('a/granted'));
    expect(alarms.noted).toEqual([]);
    await clock.advance(PERIOD_MS - 100);
    expect(kept).toEqual([[PERIOD_MS, 'a/waits']]);
    await clock.advance(PERIOD_MS);
    expect(kept.slice(1)).toEqual([[2 * PERIOD_MS, 'a/waits']]);
  });

  it('leaves its group to the next waiter, with an alarm that rings for that one alone', async () => {
    keeper.leave(enter('a/granted'));
    const [alarm] = alarms.noted;
    expect([alarms.size, hearing.isRelied]).toEqual([0, false]);
    await clock.advance(PERIOD_MS - 100);
    const next = enter('a/next');
    expect(new Set(alarms.noted)).toEqual(new Set([alarm]));
    expect([alarms.size, hearing.isRelied]).toEqual([1, true]);
    await clock.advance(PERIOD_MS - 100);
    expect(kept).toEqual([]);
    await clock.advance(100);
    expect(kept).toEqual([[2 * PERIOD_MS - 100, 'a/next']]);
    keeper.leave(next);
    expect(alarms.size).toBe(0);
    await clock.advance(10 * PERIOD_MS);
    expect(kept).toHaveLength(1);
  });

  it('rings earlier for the next waiter if that is due earlier', async () => {
    enter('a/waits');
    const next = enter('a/next');
    keeper.pause(next);
    keeper.keep(next, clock.now(), clock.now(), clock.now() + 300);
    await clock.advance(300);
    expect(kept).toEqual([[300, 'a/next']]);
  });
});

/** When the end moves nearer. The waiters have asked who waits for long, and keep their places 15 s later. */
const MOVES_AT_MS = 6_000;

/** After each of these, the resource is free in two seconds, much earlier than the waiters expected. */
const NEARER: [string, LockOptions, (lease: Lease) => Promise<unknown>][] = [
  ['a minimum', { minHoldMs: MOVES_AT_MS + 2_000, leaseMs: 120_000 }, (lease) => lease.release()],
  ['an exact extension', { leaseMs: 120_000, watchdog: false }, (lease) => lease.extend(2_000)],
];

describe.each(NEARER)('an end that moves nearer, by %s', (_, options, moveNearer) => {
  let world: LockWorld;
  let holder: Instance;
  let waiters: Instance[];
  let waits: Tracked<unknown>[];

  beforeEach(async () => {
    world = new LockWorld();
    holder = world.instance('holder');
    waiters = ['first', 'second', 'third', 'fourth', 'fifth'].map((name) => world.instance(name));
    const lease = await holder.locks.acquire('stock', options);
    waits = [];
    for (const instance of waiters) await joins(instance);
    await world.clock.advance(MOVES_AT_MS);
    await moveNearer(lease);
    await settle();
  });

  async function joins({ locks }: Instance, more: LockOptions = {}): Promise<void> {
    waits.push(track(locks.acquire('stock', { waitMs: Infinity, leaseMs: 120_000, ...more })));
    await settle();
  }

  /** Its commands and messages are lost from now on, and no connection of it listens. */
  async function dies({ store }: Instance): Promise<void> {
    store.all(lostOnTheWay);
    await store.close();
  }

  const states = () => waits.map(({ state }) => state);

  it('is known to the first waiter', async () => {
    await world.clock.advance(2_010);
    expect(states()).toEqual(['fulfilled', ...Array(4).fill('pending')]);
  });

  it.each([1, 2, 3])('is known to the waiter behind %i that have died since', async (dead) => {
    for (const instance of waiters.slice(0, dead)) await dies(instance);
    await world.clock.advance(7_000);
    expect(waits[dead]!.state).toBe('fulfilled');
  });

  it('costs the others no command while the first one takes its turn', async () => {
    await world.clock.advance(1_900);
    const before = waiters.map(({ store }) => store.commands.length);
    await world.clock.advance(900);
    expect(waiters.map(({ store }, index) => store.commands.length - before[index]!)).toEqual([1, 0, 0, 0, 0]);
  });
});

describe('a waiter that gives up before an end that has moved nearer', () => {
  it.each([1, 4, 9])('notifies the next one, even after %i before it', async (leaving) => {
    const world = new LockWorld();
    const lease = await world.instance('holder').locks.acquire('stock', { minHoldMs: 8_000, leaseMs: 120_000 });
    const stop = new AbortController();
    const stays = world.instance('stays');
    for (let index = 0; index < leaving; index++) {
      const { signal } = stop;
      track(world.instance(`leaves-${index}`).locks.acquire('stock', { waitMs: Infinity, leaseMs: 120_000, signal }));
      await settle();
    }
    const wait = track(stays.locks.acquire('stock', { waitMs: Infinity, leaseMs: 120_000 }));
    await world.clock.advance(MOVES_AT_MS);
    await lease.release();
    await settle();
    stop.abort();
    await world.clock.advance(2_010);
    expect(wait.state).toBe('fulfilled');
  });

  it('costs nothing later if the holder renews: the next keep overrides the message', async () => {
    const world = new LockWorld();
    await world.instance('holder').locks.acquire('stock', { leaseMs: 30_000 });
    const stop = new AbortController();
    const stays = world.instance('stays');
    track(world.instance('leaves').locks.acquire('stock', { waitMs: Infinity, signal: stop.signal }));
    await settle();
    track(stays.locks.acquire('stock', { waitMs: Infinity }));
    await world.clock.advance(8_000);
    stop.abort();
    await settle();
    expect(stays.store.notices).toHaveLength(1);
    await world.clock.advance(120_000);
    expect(stays.store.sent('acquire')).toHaveLength(1);
  });
});
