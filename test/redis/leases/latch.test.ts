import { randomUUID } from 'node:crypto';
import { LockShutdownError, LockUnavailableError } from '../../../lib/core/api/errors.js';
import { COUNT_DOWN, READ_LATCH, WAIT_FOR_LATCH } from '../../../lib/redis/script/scripts.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { keysWithTtl, type LockInstance, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { track } from '../../support/expect/tracked.js';

const LONG = { waitMs: 60_000 };

describe('a latch on Redis', () => {
  const redis = useRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const untilWaiting = (count: number, name = 'x') =>
    eventually(async () => expect(await admin().zcard(`lock:{${name}}:latch:waiters`)).toBe(count));
  const startBehindProxy = async () => {
    const proxy = await TcpProxy.start(redis().port);
    for (const { lua } of [COUNT_DOWN, WAIT_FOR_LATCH, READ_LATCH]) await admin().script('LOAD', lua);
    return { proxy, far: await start({ connection: proxy.url, defaults: { attemptTimeoutMs: 300 } }) };
  };

  it('opens for all who wait in all processes, by one message for each', async () => {
    // Their clocks stand still: no heartbeat looks.
    const starts = [1, 2, 3].map(() => start({ clock: new FakeClock() }));
    const instances = (await Promise.all(starts)) as [LockInstance, LockInstance, LockInstance];
    const waiting = instances.flatMap(({ latches }) => [1, 2, 3].map(() => latches.latch('x', 3).wait(LONG)));
    await untilWaiting(3);
    for (const { latches } of instances) await latches.latch('x', 3).countDown();
    await Promise.all(waiting);
    expect(await instances[0].latches.latch('x', 3).remaining()).toBe(0);
    expect(await admin().hgetall('lock:{x}:latch')).toEqual({ count: '3', open: '1' });
    expect(await admin().keys('*')).toEqual(['lock:{x}:latch']);
  });

  it('lives as long as its creator says, and everything of it is gone after that', async () => {
    const { latches } = await start();
    const latch = latches.latch('x', 2, { ttlMs: 1_000 });
    await latch.countDown();
    const waiting = track(latch.wait({ waitMs: 200 }));
    await untilWaiting(1);
    const ttls = await keysWithTtl(admin());
    expect(Object.keys(ttls)).toEqual(['lock:{x}:latch', 'lock:{x}:latch:waiters']);
    expect(ttls['lock:{x}:latch']).toBeLessThanOrEqual(1_000);
    for (const ttl of Object.values(ttls)) expect(ttl).toBeGreaterThan(0);
    await eventually(() => expect(waiting.error).toMatchObject({ code: 'LOCK_TIMEOUT' }));
    await eventually(async () => expect(await admin().keys('*')).toEqual([]));
    expect(await latches.latch('x', 5).remaining()).toBe(5);
  });

  it('is created for a day where nothing else is said, and neither waiting nor counting prolongs it', async () => {
    const { latches } = await start();
    await latches.latch('day', 3).countDown();
    expect(await admin().pttl('lock:{day}:latch')).toBeGreaterThan(86_000_000);
    await latches.latch('x', 3, { ttlMs: 60_000 }).countDown();
    await latches.latch('x', 3).countDown();
    await rejection(latches.latch('x', 3).wait({ waitMs: 50 }));
    await latches.latch('x', 3).countDown();
    expect(await admin().pttl('lock:{x}:latch')).toBeLessThanOrEqual(60_000);
  });

  it('is found open as soon as the connection that was lost is back', async () => {
    const near = await start();
    const { proxy, far } = await startBehindProxy();
    await using _ = proxy;
    const waiting = far.latches.latch('x', 1).wait(LONG);
    await untilWaiting(1);
    proxy.blackHole('toServer');
    proxy.cut();
    await near.latches.latch('x', 1).countDown();
    const asked = countQuestions(far);
    proxy.heal();
    await waiting;
    expect(asked()).toBeGreaterThan(0);
  });

  it.each([
    ['a count-down', COUNT_DOWN.sha],
    ['a wait', WAIT_FOR_LATCH.sha],
  ])('counts once, and opens, where the reply to %s is lost', async (_what, sha) => {
    const near = await start();
    const { proxy, far } = await startBehindProxy();
    await using _ = proxy;
    const lost = proxy.loseReplyTo(sha);
    const latch = far.latches.latch('x', 2);
    const waiting = latch.wait(LONG);
    const counting = latch.countDown();
    await lost;
    expect(await counting).toBe(1);
    expect(await near.latches.latch('x', 2).countDown()).toBe(0);
    await waiting;
  });

  it('goes on after SCRIPT FLUSH before each step', async () => {
    const [a, b] = [await start(), await start()];
    const flush = () => admin().script('FLUSH');
    await flush();
    const waiting = a.latches.latch('x', 2).wait(LONG);
    await untilWaiting(1);
    await flush();
    await b.latches.latch('x', 2).countDown({ id: 'a' });
    await flush();
    expect(await b.latches.latch('x', 2).remaining()).toBe(1);
    await flush();
    await b.latches.latch('x', 2).countDown({ id: 'b' });
    await waiting;
  });

  it('that Redis lost is waited for anew', async () => {
    const [a, b] = [await start(), await start()];
    const waiting = track(a.latches.latch('x', 2).wait(LONG));
    await untilWaiting(1);
    await b.latches.latch('x', 2).countDown();
    await redis().kill();
    await redis().restart();
    await eventually(async () => expect(await b.latches.latch('x', 2).countDown({ id: 'again' })).toBe(1));
    expect(waiting.state).toBe('pending');
    await b.latches.latch('x', 2).countDown();
    await eventually(() => expect(waiting.state).toBe('fulfilled'));
  });

  it('that Redis kept over a restart goes on where it was', async () => {
    const [a, b] = [await start(), await start()];
    const waiting = a.latches.latch('x', 2).wait(LONG);
    await untilWaiting(1);
    await b.latches.latch('x', 2).countDown();
    await redis().kill();
    const counting = b.latches.latch('x', 2).countDown();
    await redis().restart({ keepData: true });
    expect(await counting).toBe(0);
    await waiting;
  });

  it.each([
    ['a string', (key: string) => admin().set(key, 'theirs')],
    ['a list', (key: string) => admin().rpush(key, 'theirs')],
    ['another hash', (key: string) => admin().hset(key, 'field', 'theirs')],
    ['a hash that counts something else', (key: string) => admin().hset(key, 'count', 'theirs')],
  ])('does not touch %s of somebody else in its place, and says so', async (_what, put) => {
    const { latches } = await start();
    await put('lock:{x}:latch');
    const before = await admin().dump('lock:{x}:latch');
    const latch = latches.latch('x', 1);
    for (const call of [latch.countDown(), latch.wait(LONG), latch.wait({ waitMs: 0 }), latch.remaining()]) {
      const error = await rejection<LockUnavailableError>(call);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(/WRONGTYPE/);
    }
    expect(await admin().dump('lock:{x}:latch')).toEqual(before);
    expect(await admin().pttl('lock:{x}:latch')).toBe(-1);
    expect(await admin().keys('*')).toEqual(['lock:{x}:latch']);
  });

  it('opens although somebody else has a key in the place of those who wait', async () => {
    const { latches } = await start();
    await admin().set('lock:{x}:latch:waiters', 'theirs');
    const latch = latches.latch('x', 1);
    expect((await rejection(latch.wait(LONG))).message).toMatch(/WRONGTYPE/);
    expect(await admin().exists('lock:{x}:latch')).toBe(0);
    expect(await latch.countDown()).toBe(0);
    expect(await admin().get('lock:{x}:latch:waiters')).toBe('theirs');
    expect(await admin().pttl('lock:{x}:latch:waiters')).toBe(-1);
    await latch.wait({ waitMs: 0 });
  });

  it('forgets those who died while they waited, when the next one comes', async () => {
    const { latches } = await start();
    await admin().zadd('lock:{x}:latch:waiters', 1, 'dead/1', 2, 'dead/2');
    const waiting = track(latches.latch('x', 1).wait(LONG));
    await untilWaiting(1);
    await latches.latch('x', 1).countDown();
    await eventually(() => expect(waiting.state).toBe('fulfilled'));
  });

  it('is waited for in vain when the application ends, which leaves no connection', async () => {
    const { latches, locks, store } = await start();
    const waiting = rejection(latches.latch('x', 1).wait({ waitMs: Infinity }));
    await untilWaiting(1);
    await locks.shutdown(0);
    expect(await waiting).toBeInstanceOf(LockShutdownError);
    const channel = store.keys.inbox(store.clientId);
    await eventually(async () => expect(await admin().pubsub('NUMSUB', channel)).toEqual([channel, 0]));
    expect(await rejection(latches.latch('x', 1).countDown())).toBeInstanceOf(LockShutdownError);
  });

  it('of many frees what it counted when it opens', async () => {
    const { latches } = await start();
    const latch = latches.latch('x', 2_000);
    await Promise.all(Array.from({ length: 1_999 }, () => latch.countDown({ id: randomUUID() })));
    expect(await admin().hlen('lock:{x}:latch')).toBe(2_000);
    expect(await latch.countDown()).toBe(0);
    expect(await admin().hlen('lock:{x}:latch')).toBe(2);
  });
});

/** How many commands an instance sends from now on. */
function countQuestions({ store }: LockInstance): () => number {
  let count = 0;
  const run = store.run.bind(store);
  store.run = (...args) => {
    count++;
    return run(...args) as never;
  };
  return () => count;
}
