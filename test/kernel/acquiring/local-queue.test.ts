import { LocalStoreLeases } from '../../../lib/kernel/acquiring/local-store-leases.js';
import { type PendingCall, WaitingCalls } from '../../../lib/kernel/acquiring/pending-call.js';
import type { ResolvedLockOptions } from '../../../lib/kernel/api/lock-options.js';
import type { StoreLease } from '../../../lib/kernel/holding/store-lease.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { track } from '../../support/expect/tracked.js';

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
      const held = new LocalStoreLeases();
      for (const lease of leases as unknown as StoreLease[]) {
        held.sharableWith(semaphore);
        held.add(lease);
      }
      for (const lease of leases as unknown as StoreLease[]) if (held.has(lease)) held.delete(lease);
      expect(held.isEmpty).toBe(true);
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
