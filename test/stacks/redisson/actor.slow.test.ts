import { Redis } from 'ioredis';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { channelOf, RedissonService } from '../../support/redisson/redisson-service.js';
import { useWorkers } from './worker.js';

/** Longer than any of these tests: a waiter that gets the lock was woken. */
const LONG_MS = 600_000;

describe('the actor that behaves as RedissonLock', () => {
  const redis = useRedis();
  const startWorker = useWorkers(() => redis().port);
  let admin: Redis;
  let java: RedissonService;
  let other: RedissonService;

  beforeEach(async () => {
    admin = new Redis(redis().url);
    await admin.flushall();
    java = RedissonService.connect(redis().port, { watchdogMs: LONG_MS });
    other = RedissonService.connect(redis().port, { watchdogMs: LONG_MS });
  });

  afterEach(() => {
    java.close();
    other.close();
    admin.disconnect();
  });

  it('threads exclude each other, in one service and in two, and one thread enters again', async () => {
    const thread = java.thread(1);
    await thread.lock('stock');
    expect(await thread.tryLock('stock')).toBe(true);
    expect(await java.thread(2).tryLock('stock')).toBe(false);
    expect(await other.thread(1).tryLock('stock')).toBe(false);
    expect(await admin.hgetall('stock')).toEqual({ [`${java.id}:1`]: '2' });

    await thread.unlock('stock');
    expect(await other.thread(1).tryLock('stock')).toBe(false);
    await thread.unlock('stock');
    expect(await other.thread(1).tryLock('stock')).toBe(true);
    expect((await rejection(thread.unlock('stock'))).message).toContain('not locked by current thread');
  });

  it('excludes node-redisson, and the waiter of either is woken by the unlock of the other', async () => {
    const node = await startWorker('node-redisson', LONG_MS);
    await node.ask('lock', 'stock');
    const waiting = java.thread(1).lock('stock');
    await untilSubscribed(1);
    await node.ask('unlock', 'stock');
    await waiting;

    const waitingNode = node.ask('lock', 'stock');
    await untilSubscribed(1);
    // It misses an unlock that it reads together with the reply to its SUBSCRIBE.
    await node.ask('readAll');
    await java.thread(1).unlock('stock');
    await waitingNode;
    expect(await java.thread(1).tryLock('stock')).toBe(false);

    const forced = other.thread(1).lock('stock');
    await untilSubscribed(1);
    expect(await node.ask('forceUnlock', 'stock')).toBe(true);
    await forced;
  });

  it('the watchdog renews what has no lease of its own, until the service dies', async () => {
    const brief = RedissonService.connect(redis().port, { watchdogMs: 2_000 });
    await brief.thread(1).lock('watched');
    await brief.thread(1).lock('fixed', 2_000);
    await eventually(async () => expect(await admin.exists('fixed')).toBe(0));
    await eventually(async () => expect(await admin.pttl('watched')).toBeGreaterThan(1_400));
    brief.close();
    await java.thread(1).lock('watched');
  });

  async function untilSubscribed(count: number): Promise<void> {
    await eventually(async () => {
      const [, subscribers] = await admin.pubsub('NUMSUB', channelOf('stock'));
      expect(subscribers).toBe(count);
    });
  }
});
