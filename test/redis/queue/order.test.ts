import { CriticalSections } from '../../support/expect/critical-sections.js';
import { type LockInstance, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

type Two = [LockInstance, LockInstance];

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('who is next', () => {
  const redis = useRedis();
  useAdmin(() => redis().url); // empties it before each test
  const start = useInstances(() => redis().url);

  const startMany = (count: number) => Promise.all(range(count).map(() => start()));

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
