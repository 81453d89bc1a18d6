import type { LockEvent } from '../../../lib/kernel/events/events.js';
import { settle } from '../../support/world/fake-clock.js';
import { LockWorld } from '../../support/world/lock-world.js';
import { track } from '../../support/expect/tracked.js';
import { failing, lostOnTheWay } from '../../support/world/scripted-store.js';

describe('observers', () => {
  let world: LockWorld;

  beforeEach(() => {
    world = new LockWorld();
  });

  it('that throw break nothing, and the others still get the event', async () => {
    const events: LockEvent[] = [];
    const bad = () => {
      throw new Error('observer');
    };
    const { locks, store } = world.instance('a', { observers: [bad, (event) => events.push(event)] });
    const lease = await locks.acquire('stock', { leaseMs: 3_000 });
    store.next('renew', failing('notExecuted'));
    await world.clock.advance(2_000);
    expect(lease.isHeld()).toBe(true);
    await lease.release();
    expect(events.map(({ type }) => type)).toEqual(['acquired', 'renewalFailed', 'renewalRecovered', 'released']);
    expect(world.server.isEmpty).toBe(true);
  });

  it('that reject are no unhandled rejection', async () => {
    const { locks } = world.instance('a', { observers: [() => Promise.reject(new Error('async observer'))] });
    const lease = await locks.acquire('stock');
    await lease.release();
    await settle(); // an unhandled rejection would end the process here
    expect(world.server.isEmpty).toBe(true);
  });

  it('that throw when a lease is lost do not keep its signal from aborting', async () => {
    const bad = () => {
      throw new Error('observer');
    };
    const { locks } = world.instance('a', { observers: [bad] });
    const lease = await locks.acquire('stock', { watchdog: false, leaseMs: 100 });
    const { signal } = lease;
    await world.clock.advance(100);
    expect(signal.aborted).toBe(true);
  });

  describe('that end a call in its waiting event', () => {
    /** Aborts the n-th call that is reported as waiting. */
    const abortingInstance = (stop: AbortController, nth = 1) => {
      let told = 0;
      const observer = ({ type }: LockEvent) => {
        if (type === 'waiting' && ++told === nth) stop.abort();
      };
      return world.instance('a', { observers: [observer] });
    };

    it('break nothing if its time ends at that moment', async () => {
      const stop = new AbortController();
      const { locks, store } = abortingInstance(stop);
      store.fates.acquire = lostOnTheWay;
      const call = track(locks.acquire('stock', { waitMs: 1_000, attemptTimeoutMs: 1_000, signal: stop.signal }));
      await world.clock.advance(1_000);
      expect(call.error).toMatchObject({ code: 'LOCK_ABORTED' });
    });

    it('end no other call with it, which has more time', async () => {
      const stop = new AbortController();
      const { locks, store } = abortingInstance(stop, 2);
      store.fates.acquire = lostOnTheWay;
      const first = track(locks.acquire('stock', { waitMs: 1_000, attemptTimeoutMs: 1_000, signal: stop.signal }));
      const second = track(locks.acquire('stock', { waitMs: 60_000 }));
      await world.clock.advance(1_000);
      expect([first.error, second.state]).toEqual([expect.objectContaining({ code: 'LOCK_ABORTED' }), 'pending']);
    });

    it('leave no alarm behind for it', async () => {
      const stop = new AbortController();
      const { locks } = abortingInstance(stop);
      const held = await locks.acquire('stock');
      const call = track(locks.acquire('stock', { waitMs: 60_000, signal: stop.signal }));
      await settle();
      expect(call.error).toMatchObject({ code: 'LOCK_ABORTED' });
      await held.release();
      expect(locks.stats()).toMatchObject({ resources: 0, alarms: 0 });
    });
  });

  it('receive an acquisition that fails', async () => {
    const a = world.instance('a');
    const b = world.instance('b');
    await a.locks.acquire('stock');
    const error = await b.locks.acquire('stock', { waitMs: 0 }).catch((e: unknown) => e);
    expect(b.events).toEqual([
      {
        type: 'notAcquired',
        service: 'default',
        resource: 'stock',
        mode: 'exclusive',
        group: 'stock',
        resources: ['stock'],
        waitedMs: 0,
        hasWaited: false,
        error,
      },
    ]);
  });

  it('can unsubscribe', async () => {
    const a = world.instance('a');
    const heard: LockEvent[] = [];
    const leave = a.locks.observers.add((event) => heard.push(event));
    const lease = await a.locks.acquire('stock');
    leave();
    await lease.release();
    expect(heard.map(({ type }) => type)).toEqual(['acquired']);
  });
});
