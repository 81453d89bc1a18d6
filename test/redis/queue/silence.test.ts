import { CriticalSections } from '../../support/expect/critical-sections.js';
import { eventually, untilAborted } from '../../support/expect/eventually.js';
import { expectNothingLeft, untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { gate } from '../../support/expect/tracked.js';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('a queue on a command connection that falls silent', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  /** Two instances, and one behind a proxy. */
  const scene = async (leaseMs = 20_000) => {
    const proxy = await TcpProxy.start(redis().port);
    const [a, b] = [await start(), await start()];
    const far = await start({ connection: proxy.url, defaults: { leaseMs, attemptTimeoutMs: 300 } });
    return { proxy, a, b, far, sections: new CriticalSections() };
  };

  it('for less than its lease, a waiter keeps its place', async () => {
    const { proxy, a, b, far, sections } = await scene();
    await using _ = proxy;
    const lease = await a.locks.acquire('x');
    const calls = [sections.call(far)];
    await untilQueued(a, 'x', far);
    calls.push(sections.call(b));
    await untilQueued(a, 'x', far, b);
    proxy.blackHole('toServer', 'commands');
    await pause(1_700); // a heartbeat, and its time-out
    await untilQueued(a, 'x', far, b);
    await lease.release();
    await eventually(() => expect(sections.order(far, b)[0]).toBe(0));
    proxy.heal();
    await Promise.all(calls);
    sections.expectSound(2);
    await expectNothingLeft(admin(), a, b, far);
  });

  it('for longer than its lease, a waiter loses its place, and no more', async () => {
    const { proxy, a, b, far, sections } = await scene(500);
    await using _ = proxy;
    const lease = await a.locks.acquire('x');
    const calls = [sections.call(far)];
    await untilQueued(a, 'x', far);
    proxy.blackHole('toServer', 'commands');
    calls.push(sections.call(b, undefined, () => pause(50)));
    await untilQueued(a, 'x', b);
    await lease.release();
    await eventually(() => expect(sections.order(far, b)).toEqual([1]));
    proxy.heal();
    await Promise.all(calls);
    sections.expectSound(2);
    await expectNothingLeft(admin(), a, b, far);
  });

  it('for longer than its lease, a holder loses the lock, and what arrives late changes nothing', async () => {
    const { proxy, a, b, far, sections } = await scene(600);
    await using _ = proxy;
    const lease = await far.locks.acquire('x');
    const calls = [sections.call(far)];
    proxy.blackHole('toServer', 'commands');
    const hold = gate();
    let stillHeld: boolean | undefined;
    const work = async (own: { verify(): Promise<boolean> }): Promise<void> => {
      await hold.opened;
      stillHeld = await own.verify();
    };
    calls.push(sections.call(a, undefined, (own) => work(own as never)));
    await untilAborted(lease.signal);
    expect(lease.isHeld()).toBe(false);
    await eventually(() => expect(sections.order(far, a)).toEqual([1]));
    const released = lease.release().catch(() => {});
    proxy.heal();
    await released;
    await untilQueued(b, 'x', far);
    hold.open();
    await Promise.all(calls);
    expect(stillHeld).toBe(true);
    expect(sections.order(far, a)).toEqual([1, 0]);
    sections.expectSound(2);
    await expectNothingLeft(admin(), a, b, far);
  });

  it('a grant by message is trusted for no longer than Redis keeps the lock, even if Redis cannot be asked any more', async () => {
    const { proxy, a, b, far } = await scene(1_500);
    await using _ = proxy;
    const lease = await a.locks.acquire('x');
    const waiting = far.locks.acquire('x', { waitMs: 60_000 });
    await untilQueued(b, 'x', far);
    await pause(200);
    proxy.blackHole('toServer', 'commands');
    await lease.release();
    const granted = await waiting;
    const ttl = await admin().pttl('lock:{x}');
    expect(granted.remainingMs()).toBeLessThanOrEqual(ttl);
    const next = await a.locks.acquire('x', { waitMs: 60_000 });
    expect(granted.isHeld()).toBe(false);
    proxy.heal();
    await granted.release();
    expect(await next.verify()).toBe(true);
    await next.release();
    await expectNothingLeft(admin(), a, b, far);
  });
});
