import { fixedInterval } from '../../../lib/core/api/retry.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import { type LockInstance, untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

type Two = [LockInstance, LockInstance];
type Three = [LockInstance, LockInstance, LockInstance];

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('who is next', () => {
  const redis = useRedis();
  useAdmin(() => redis().url); // empties it before each test
  const start = useInstances(() => redis().url);

  const startMany = (count: number) => Promise.all(range(count).map(() => start()));

  it('who polls, or only tries, gets nothing as long as somebody waits', async () => {
    const [a, b, c] = (await startMany(3)) as Three;
    const sections = new CriticalSections();
    const lease = await a.locks.acquire('x', { strictOrder: true });
    const queue = [a, b].map((instance) => sections.calls(10, instance, { strictOrder: true }));
    await untilQueued(a, 'x', b);
    const polling = sections.call(c, { retry: fixedInterval({ intervalMs: 1 }) });
    let tries = 0;
    const trying = (async () => {
      for (; sections.tokens.length < 20; tries++) {
        const won = await c.locks.tryAcquire('x');
        if (!won) continue;
        await sections.enter(c, won);
        await won.release();
      }
    })();
    await new Promise((resolve) => setTimeout(resolve, 20));
    await lease.release();
    await Promise.all([...queue, polling, trying]);
    expect(tries).toBeGreaterThan(20);
    expect(sections.order(a, b, c).slice(0, 20)).toEqual(range(20).map((i) => (i + 1) % 2));
    expect(sections.order(a, b, c).slice(20)).toContain(2);
  });

  it('tokens grow over leases passed on in memory, rotations, replies, messages, and grants at once', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const deaf = await start({ connection: proxy.url });
    const [a, b] = (await startMany(2)) as Two;
    proxy.blackHole('toClient', 'subscriber');
    let messages = 0;
    b.store.listen({ granted: () => messages++, reconnected: () => {} });
    const sections = new CriticalSections();
    await sections.call(a);
    const ways = [{}, { strictOrder: true }].flatMap((options) => [
      sections.calls(10, a, options),
      sections.calls(10, b, options),
      sections.calls(2, deaf, options),
    ]);
    await Promise.all(ways);
    await sections.call(a);
    sections.expectSound(46);
    expect(Math.max(...sections.rows())).toBeGreaterThan(1);
    expect(messages).toBeGreaterThanOrEqual(4);
  });
});
