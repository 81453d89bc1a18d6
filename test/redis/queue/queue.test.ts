import { Redis } from 'ioredis';
import { eventually } from '../../support/expect/eventually.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('the queue of a resource', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  const untilWaiting = (locks: Awaited<ReturnType<typeof start>>['locks'], count: number) =>
    eventually(async () => expect((await locks.inspect('x')).waiters).toHaveLength(count));

  it('a waiter in another process is granted by the release, long before its next heartbeat', async () => {
    const { locks } = await start();
    const other = await startProcess();
    let fastest = Infinity;
    for (let i = 0; i < 5; i++) {
      const lease = await locks.acquire('x', { leaseMs: 60_000 });
      const waiting = other.ask('acquire', 'x');
      await untilWaiting(locks, 1);
      const from = performance.now();
      await lease.release();
      expect(await waiting).toMatchObject({ isHeld: true });
      fastest = Math.min(fastest, performance.now() - from);
      await other.ask('release', 'x');
    }
    // By heartbeats alone, five waits of 0 to 1.25 s would all have to be this short.
    expect(fastest).toBeLessThan(250);
  });

  it('an instance that starts while Redis is busy with a script listens as soon as it can', async () => {
    await admin().config('SET', 'lua-time-limit', '10');
    const killer = new Redis(redis().url, { enableReadyCheck: false });
    await killer.ping();
    const endless = admin()
      .eval('while true do end', 0)
      .catch(() => undefined);
    const { store } = await start({ patienceMs: 500 });
    await eventually(async () => expect(await killer.script('KILL')).toBe('OK'));
    await endless;
    killer.disconnect();
    const channel = store.keys.inbox(store.clientId);
    await eventually(async () => expect(await admin().pubsub('NUMSUB', channel)).toEqual([channel, 1]));
  });

  it('50 waiters of one process cost Redis no more than one, and do not poll', async () => {
    const [a, b] = [await start(), await start()];
    const lease = await a.locks.acquire('x', { leaseMs: 60_000, watchdog: false });
    const order: number[] = [];
    const callers = Array.from({ length: 50 }, (_, i) =>
      b.locks.using('x', { waitMs: 60_000 }, () => void order.push(i)),
    );
    await untilWaiting(a.locks, 1);
    await resetCounts(admin());
    const from = performance.now();
    // Two heartbeats, and nothing else.
    await eventually(async () => expect((await commandCounts(admin())).evalsha).toBeGreaterThanOrEqual(2));
    const heartbeats = (performance.now() - from) / 1_000 + 1;
    expect((await commandCounts(admin())).evalsha).toBeLessThanOrEqual(heartbeats);
    await resetCounts(admin());
    await lease.release();
    await Promise.all(callers);
    expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i));
    // The release, a rotation if the row ends before, and the last release. Some room where a run of them takes long.
    expect((await commandCounts(admin())).evalsha).toBeLessThanOrEqual(4 + 10);
  });
});
