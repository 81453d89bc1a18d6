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

  it('the reply to the question that joins is lost: it has one place, and keeps it', async () => {
    const { proxy, a, b, far, sections } = await scene();
    await using _ = proxy;
    const lease = await a.locks.acquire('x');
    const lost = proxy.loseReplyTo(ACQUIRE.sha);
    const calls = [sections.call(far)];
    await lost;
    calls.push(sections.call(b));
    await untilQueued(a, 'x', far, b);
    await eventually(async () => expect(await far.locks.inspect('x')).toMatchObject({ waiters: { length: 2 } }));
    await untilQueued(a, 'x', far, b);
    await lease.release();
    await Promise.all(calls);
    expect(sections.order(far, b)).toEqual([0, 1]);
    sections.expectSound(2);
    await expectNothingLeft(admin(), a, b, far);
  });

  it.each([
    ['while others wait: they come first', true, [1, 2, 0]],
    ['and nobody else waits: the next call of the process has it', false, [0]],
  ])('the reply to a rotation is lost, %s', async (_what, othersWait, order) => {
    const { proxy, a, b, far, sections } = await scene();
    await using _ = proxy;
    const lease = await far.locks.acquire('x', { strictOrder: true });
    const calls = [sections.call(far)];
    if (othersWait) {
      calls.push(sections.call(a));
      await untilQueued(b, 'x', a);
      calls.push(sections.call(b));
      await untilQueued(b, 'x', a, b);
    }
    const lost = proxy.loseReplyTo(ROTATE.sha);
    await expect(lease.release()).rejects.toThrow(/release "x"/);
    await lost;
    await Promise.all(calls);
    expect(sections.order(far, a, b)).toEqual(order);
    sections.expectSound(order.length);
    expect(sections.tokens[0]).toBeGreaterThan(lease.fencingToken);
    await expectNothingLeft(admin(), a, b, far);
  });

  it('a rotation that never reached Redis is sent again', async () => {
    const { proxy, a, b, far, sections } = await scene();
    await using _ = proxy;
    const lease = await far.locks.acquire('x', { strictOrder: true });
    const calls = [sections.call(far), sections.call(a)];
    await untilQueued(b, 'x', a);
    proxy.blackHole('toServer', 'commands');
    const released = lease.release().catch(() => 'unknown');
    proxy.cut('commands'); // and what is held back is lost
    expect(await released).toBe('unknown');
    expect(await admin().exists('lock:{x}')).toBe(1);
    proxy.heal();
    await Promise.all(calls);
    expect(sections.order(far, a)).toEqual([1, 0]);
    sections.expectSound(2);
    await expectNothingLeft(admin(), a, b, far);
  });

  it('the reply to a release is lost: the next holder keeps its lock when the release is sent again', async () => {
    const { proxy, a, b, far } = await scene();
    await using _ = proxy;
    const lease = await far.locks.acquire('x');
    const waiting = a.locks.acquire('x', { waitMs: 60_000 });
    await untilQueued(b, 'x', a);
    const lost = proxy.loseReplyTo(RELEASE.sha);
    await expect(lease.release()).rejects.toThrow(/release "x"/);
    await lost;
    const next = await waiting;
    await eventually(() => expect(far.locks.stats().orphanReleases).toBe(0));
    expect(await next.verify()).toBe(true);
    await next.release();
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
