import { fixedInterval } from '../../../lib/core/api/retry.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import {
  expectNothingLeft,
  type LockInstance,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

type Two = [LockInstance, LockInstance];
type Three = [LockInstance, LockInstance, LockInstance];

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('who is next', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const startMany = (count: number) => Promise.all(range(count).map(() => start()));

  it('instances are served in the order they came', async () => {
    const [holder, ...waiters] = await startMany(7);
    const sections = new CriticalSections();
    const lease = await holder!.locks.acquire('x');
    const calls: Promise<void>[] = [];
    for (const waiter of waiters) {
      calls.push(sections.call(waiter));
      await untilQueued(holder!, 'x', ...waiters.slice(0, calls.length));
    }
    await lease.release();
    await Promise.all(calls);
    expect(sections.order(...waiters)).toEqual(range(6));
    sections.expectSound(6);
    await expectNothingLeft(admin(), holder!, ...waiters);
  });

  it('with cohort 0 they take strict turns, however many calls of each wait', async () => {
    const [holder, ...waiters] = await startMany(4);
    const sections = new CriticalSections();
    const lease = await holder!.locks.acquire('x');
    const calls: Promise<unknown>[] = [];
    for (const waiter of waiters) {
      calls.push(sections.calls(4, waiter, { cohort: 0 }));
      await untilQueued(holder!, 'x', ...waiters.slice(0, calls.length));
    }
    await lease.release();
    await Promise.all(calls);
    expect(sections.order(...waiters)).toEqual([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    sections.expectSound(12);
  });

  it.each([
    ['stands behind everybody when its row is over', { cohortMs: 0 }, [1, 2, 0]],
    ['is the next one while its row lasts', { cohortMs: 60_000 }, [0, 1, 2]],
  ])('the next call of the holder itself %s', async (_what, options, order) => {
    const [a, b, c] = (await startMany(3)) as Three;
    const sections = new CriticalSections();
    const lease = await a.locks.acquire('x', options);
    const calls = [sections.call(a, options), sections.call(b, options)];
    await untilQueued(a, 'x', b);
    calls.push(sections.call(c, options));
    await untilQueued(a, 'x', b, c);
    await lease.release();
    await Promise.all(calls);
    expect(sections.order(a, b, c)).toEqual(order);
  });

  it('who polls, or only tries, gets nothing as long as somebody waits', async () => {
    const [a, b, c] = (await startMany(3)) as Three;
    const sections = new CriticalSections();
    const lease = await a.locks.acquire('x', { cohort: 0 });
    const queue = [a, b].map((instance) => sections.calls(10, instance, { cohort: 0 }));
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

  it('those who wait for a reentrant and for an exclusive lock stand in one queue', async () => {
    const [holder, ...waiters] = await startMany(7);
    const sections = new CriticalSections();
    const modes = waiters.map((_, i) => (i % 2 ? 'reentrant' : 'exclusive'));
    const lease = await holder!.locks.acquire('x', { mode: 'reentrant' });
    const seen: unknown[] = [];
    const calls: Promise<void>[] = [];
    for (const [i, waiter] of waiters.entries()) {
      const mode = modes[i]!;
      const work = async (): Promise<void> => {
        seen.push((await holder!.store.inspect('x')).mode);
        if (mode === 'reentrant') await waiter.locks.using('x', { mode }, async (inner) => inner.assertHeld());
      };
      calls.push(sections.call(waiter, { mode }, work));
      await untilQueued(holder!, 'x', ...waiters.slice(0, i + 1));
    }
    await lease.release();
    await Promise.all(calls);
    expect(sections.order(...waiters)).toEqual(range(6));
    expect(seen).toEqual(modes);
    sections.expectSound(6);
    await expectNothingLeft(admin(), holder!, ...waiters);
  });

  it('calls of one process with different modes and leases keep their order too', async () => {
    const [a, b] = (await startMany(2)) as Two;
    const sections = new CriticalSections();
    const lease = await a.locks.acquire('x');
    const order: number[] = [];
    const calls = range(9).map((i) => {
      const mode = i % 3 === 1 ? 'reentrant' : 'exclusive';
      return sections.call(b, { mode, leaseMs: i % 2 ? 5_000 : 8_000 }, () => void order.push(i));
    });
    await untilQueued(a, 'x', b);
    await lease.release();
    await Promise.all(calls);
    expect(order).toEqual(range(9));
    sections.expectSound(9);
  });

  it('each is granted a lease of its own length, also where it has waited for longer than that', async () => {
    const [holder, ...waiters] = await startMany(4);
    const sections = new CriticalSections();
    const leases = [500, 60_000, 1_500];
    const lease = await holder!.locks.acquire('x');
    const calls: Promise<void>[] = [];
    const ttls: number[] = [];
    for (const [i, waiter] of waiters.entries()) {
      const work = async (own: { remainingMs(): number }): Promise<void> => {
        ttls.push(Math.max(await admin().pttl('lock:{x}'), own.remainingMs()));
      };
      calls.push(sections.call(waiter, { leaseMs: leases[i]! }, work));
      await untilQueued(holder!, 'x', ...waiters.slice(0, i + 1));
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await lease.release();
    await Promise.all(calls);
    expect(sections.order(...waiters)).toEqual([0, 1, 2]);
    for (const [i, ttl] of ttls.entries()) expect(ttl).toBeLessThanOrEqual(leases[i]!);
    expect(ttls[1]).toBeGreaterThan(30_000);
  });

  it('tokens grow over hand-overs in memory, rotations, replies, messages, and grants at once', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const deaf = await start({ connection: proxy.url });
    const [a, b] = (await startMany(2)) as Two;
    proxy.blackHole('toClient', 'subscriber');
    let messages = 0;
    b.store.listen({ granted: () => messages++, reconnected: () => {} });
    const sections = new CriticalSections();
    const options = { cohort: 3, cohortMs: 60_000 };
    await sections.call(a);
    const calls = [sections.calls(20, a, options), sections.calls(20, b, options), sections.calls(4, deaf, options)];
    await Promise.all(calls);
    await sections.call(a);
    sections.expectSound(46);
    expect(sections.rows().filter((row) => row === 4).length).toBeGreaterThanOrEqual(11);
    expect(messages).toBeGreaterThanOrEqual(4);
  });
});
