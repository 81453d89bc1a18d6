import { ACQUIRE, RELEASE, ROTATE } from '../../../lib/redis/script/scripts.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import { eventually } from '../../support/expect/eventually.js';
import { expectNothingLeft, untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

describe('a queue on a command connection that fails', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  /** Two instances, and one behind a proxy. All scripts are known, so a reply that is lost is that of the command itself. */
  const scene = async () => {
    const proxy = await TcpProxy.start(redis().port);
    const [a, b] = [await start(), await start()];
    const far = await start({ connection: proxy.url, defaults: { leaseMs: 20_000, attemptTimeoutMs: 300 } });
    for (const { lua } of [ACQUIRE, RELEASE, ROTATE]) await admin().script('LOAD', lua);
    await (await far.locks.acquire('warm-up')).release();
    return { proxy, a, b, far, sections: new CriticalSections() };
  };

  it('the reply to a rotation is lost while others wait: they come first', async () => {
    const { proxy, a, b, far, sections } = await scene();
    await using _ = proxy;
    const lease = await far.locks.acquire('x', { strictOrder: true });
    const calls = [sections.call(far), sections.call(a)];
    await untilQueued(b, 'x', a);
    calls.push(sections.call(b));
    await untilQueued(b, 'x', a, b);
    const lost = proxy.loseReplyTo(ROTATE.sha);
    await expect(lease.release()).rejects.toThrow(/release "x"/);
    await lost;
    await Promise.all(calls);
    expect(sections.order(far, a, b)).toEqual([1, 2, 0]);
    sections.expectSound(3);
    expect(sections.tokens[0]).toBeGreaterThan(lease.fencingToken);
    await expectNothingLeft(admin(), a, b, far);
  });

  it('a connection that is cut again and again leaves a waiter in its place', async () => {
    const { proxy, a, b, far, sections } = await scene();
    await using _ = proxy;
    const lease = await a.locks.acquire('x');
    const calls = [sections.call(far), sections.call(far)];
    await untilQueued(a, 'x', far);
    calls.push(sections.call(b));
    await untilQueued(a, 'x', far, b);
    for (let i = 0; i < 4; i++) {
      proxy.cut();
      await eventually(async () => expect(await far.locks.inspect('x')).toMatchObject({ waiters: { length: 2 } }));
      await untilQueued(a, 'x', far, b);
    }
    await eventually(async () => {
      const channel = far.store.keys.inbox(far.store.clientId);
      expect(await admin().pubsub('NUMSUB', channel)).toEqual([channel, 1]);
    });
    await lease.release();
    await Promise.all(calls);
    expect(sections.order(far, b).filter((place) => place === 0)).toHaveLength(2);
    expect(sections.order(far, b)[0]).toBe(0);
    sections.expectSound(3);
    await expectNothingLeft(admin(), a, b, far);
  });
});
