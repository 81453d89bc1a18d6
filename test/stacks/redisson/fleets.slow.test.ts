import { Redis } from 'ioredis';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { type Library, useWorkers, type Worker } from './worker.js';

/** Longer than any of these tests: a waiter that gets the lock was woken. */
const LONG_MS = 600_000;
/** How long the others wait after a death. Waiters of node-redisson miss an unlock now and then, and wait as long. */
const LEASE_MS = 2_000;

describe('processes with Redisson, with node-redisson and with ours', () => {
  const redis = useRedis();
  const startWorker = useWorkers(() => redis().port);
  let admin: Redis;

  beforeEach(async () => {
    admin = new Redis(redis().url);
    await admin.flushall();
  });

  afterEach(() => admin.disconnect());

  it.each<[Library, Library]>([
    ['redisson', 'ours'],
    ['ours', 'redisson'],
    ['node-redisson', 'ours'],
    ['ours', 'node-redisson'],
  ])('the lock of %s is released to %s, which waits for it', async (first, second) => {
    const [holder, waiter] = await Promise.all([startWorker(first, LONG_MS), startWorker(second, LONG_MS)]);
    await holder.ask('lock', 'stock');
    const waiting = waiter.ask('lock', 'stock');
    await untilSubscribed();
    // It misses an unlock that it reads together with the reply to its SUBSCRIBE.
    if (second === 'node-redisson') await waiter.ask('readAll');
    const [field] = await admin.hkeys('stock');
    await holder.ask('unlock', 'stock');
    await waiting;
    expect(await admin.hkeys('stock')).not.toEqual([field]);
  });

  it.each<[Library, Library]>([
    ['redisson', 'ours'],
    ['ours', 'redisson'],
  ])('%s is killed: %s gets the lock when the lease is over', async (first, second) => {
    const [holder, waiter] = await Promise.all([startWorker(first, LEASE_MS), startWorker(second, LONG_MS)]);
    await holder.ask('lock', 'stock');
    const [field] = await admin.hkeys('stock');
    const waiting = waiter.ask('lock', 'stock');
    await untilSubscribed();
    // Renewed for longer than one lease, while the other waits.
    await eventually(async () => expect(await admin.pttl('stock')).toBeLessThan(LEASE_MS * 0.8));
    await eventually(async () => expect(await admin.pttl('stock')).toBeGreaterThan(LEASE_MS * 0.8));
    expect(await admin.hkeys('stock')).toEqual([field]);
    await holder.kill();
    await waiting;
    expect(await admin.hkeys('stock')).not.toEqual([field]);
  });

  it('lose no update of one counter, also where processes are killed', async () => {
    const fleet: Library[] = ['redisson', 'redisson', 'node-redisson', 'ours', 'ours'];
    const doomed: Library[] = ['redisson', 'ours'];
    const workers = await Promise.all(fleet.map((library) => startWorker(library, LEASE_MS)));
    const victims = await Promise.all(doomed.map((library) => startWorker(library, LEASE_MS)));
    const counting = workers.map((worker, index) => count(worker, fleet[index] === 'node-redisson' ? 10 : 30));
    for (const victim of victims) {
      const killed = rejection(count(victim, 1_000_000));
      const seen = (await written()).length;
      await eventually(async () => expect((await written()).length).toBeGreaterThan(seen + 10));
      await victim.kill();
      expect((await killed).message).toContain('has ended');
    }
    await Promise.all(counting);
    const values = await written();
    expect(values.length).toBeGreaterThanOrEqual(4 * 30 + 10);
    expect(values).toEqual(values.map((_, index) => index + 1));
    expect(Number(await admin.get('counter'))).toBe(values.length);
  });

  it('without alsoLock, the same fleet loses updates', async () => {
    const fleet: Library[] = ['redisson', 'ours alone'];
    const workers = await Promise.all(fleet.map((library) => startWorker(library, LEASE_MS)));
    await eventually(async () => {
      await Promise.all(workers.map((worker) => count(worker, 50)));
      const values = await written();
      expect(new Set(values).size).toBeLessThan(values.length);
    });
  });

  function count(worker: Worker, times: number): Promise<void> {
    return worker.ask('count', 'stock', 'counter', times);
  }

  async function written(): Promise<number[]> {
    return (await admin.lrange('counter-log', 0, -1)).map(Number);
  }

  /** A waiter listens on the channel of Redisson. Ours has a channel of its own, too. */
  function untilSubscribed(): Promise<void> {
    return eventually(async () => {
      expect(await admin.pubsub('NUMSUB', 'redisson_lock__channel:{stock}')).toEqual([expect.any(String), 1]);
    });
  }
});
