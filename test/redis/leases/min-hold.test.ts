import { setTimeout } from 'node:timers/promises';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { eventually } from '../../support/expect/eventually.js';
import { useProcesses } from '../../support/process/lock-process.js';
import {
  commandCounts,
  expectNothingLeft,
  resetCounts,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

/** When Redis granted it, in milliseconds of its own clock: 32 tokens to a tick, and 100 ticks to a millisecond. */
function grantedAt({ fencingToken }: Pick<Lease, 'fencingToken'>): number {
  return Math.floor(fencingToken / 3_200);
}

describe('a lease with minHoldMs, on a real Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  it('is granted to the next process when the minimum is over by the clock of Redis, without polling', async () => {
    const [a, b, c] = [await start(), await start(), await start()];
    const lease = await a.locks.acquire('x', { minHoldMs: 600, leaseMs: 60_000 });
    const calls = [b, c].map(({ locks }) => locks.acquire('x', { leaseMs: 60_000 }));
    await untilQueued(a, 'x', b, c);
    await resetCounts(admin());
    const releasedAt = performance.now();
    await lease.release();
    const next = await calls[0]!;
    const seconds = Math.ceil((performance.now() - releasedAt) / 1_000);
    expect(grantedAt(next) - grantedAt(lease)).toBeGreaterThanOrEqual(600);
    // The release, the question of b, and the probes of the inboxes.
    expect((await commandCounts(admin())).evalsha).toBeLessThanOrEqual(2 + 2 * seconds);
    await next.release();
    await (await calls[1]!).release();
    await expectNothingLeft(admin(), a, b, c);
  });

  it('costs a command in place of the release, and no other', async () => {
    const { locks } = await start();
    await (await locks.acquire('y', { minHoldMs: 1 })).release();
    await resetCounts(admin());
    await (await locks.acquire('x', { minHoldMs: 60_000 })).release();
    expect((await commandCounts(admin())).evalsha).toBe(2);
  });

  it('is counted by the process where the tokens are ahead of the clock of Redis', async () => {
    const { locks } = await start();
    const tomorrow = (Date.now() - Date.UTC(2020, 0, 1) + 86_400_000) * 100;
    await admin().set('lock:fence', tomorrow);
    await (await locks.acquire('x', { minHoldMs: 500 })).release();
    const left = await admin().pttl('lock:{x}');
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(508);
  });

  it('is kept without memory to spare, in every mode', async () => {
    const { locks } = await start();
    const options = { minHoldMs: 60_000, waitMs: 0 };
    const leases: Lease[] = [];
    for (const mode of ['exclusive', 'reentrant', 'read', 'write'] as const) {
      leases.push(await locks.acquire(mode, { ...options, mode }));
    }
    const semaphore = locks.semaphore('semaphore', { permits: 3 });
    leases.push(await semaphore.acquire({ ...options, count: 2 }), await semaphore.acquire());
    await admin().config('SET', 'maxmemory', '1');
    try {
      for (const lease of leases) await lease.release();
    } finally {
      await admin().config('SET', 'maxmemory', '0');
    }
    for (const { resource } of leases) {
      const { holders, ttlMs } = await locks.inspect(resource);
      expect([resource, holders.length]).toEqual([resource, 1]);
      expect(ttlMs).toBeGreaterThan(50_000);
    }
    expect(await semaphore.available()).toBe(1);
  });

  it.each([
    ['has no client', ['1', 'nobody']],
    ['is alone', []],
  ])('is kept where another program has written a queue whose first waiter %s', async (_, owner) => {
    const { locks } = await start();
    const lease = await locks.acquire('x', { minHoldMs: 60_000 });
    await admin().zadd('lock:{x}:waiters', '1', ' 1 exclusive 9000000000000 0 30000', ...owner);
    await lease.release();
    expect(await admin().pttl('lock:{x}')).toBeGreaterThan(50_000);
  });

  it('is granted in time where the waiters before the next one give up or die, after a wait of over five seconds', async () => {
    const [a, b, c] = [await start(), await start(), await start()];
    const gone = await startProcess();
    const stop = new AbortController();
    const waiting = { leaseMs: 120_000, waitMs: 60_000 };
    const lease = await a.locks.acquire('x', { minHoldMs: 8_500, leaseMs: 120_000 });
    gone.ask('acquire', 'x', waiting).catch(() => {}); // it is killed
    await eventually(async () => expect((await a.locks.inspect('x')).waiters).toHaveLength(1));
    b.locks.acquire('x', { ...waiting, signal: stop.signal }).catch(() => {}); // it gives up
    await eventually(async () => expect((await a.locks.inspect('x')).waiters).toHaveLength(2));
    const next = c.locks.acquire('x', waiting);
    await untilQueued(a, 'x', gone, b, c);
    // By then, each of them has kept its place to tell of its long wait, and it is due again in 15 s.
    await setTimeout(6_000);
    await lease.release();
    stop.abort();
    await gone.kill();
    const lateMs = grantedAt(await next) - grantedAt(lease) - 8_500;
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThan(5_000);
  }, 60_000);
});
