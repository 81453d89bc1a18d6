import { setTimeout } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LockOptions } from '../../../lib/core/api/lock-options.js';
import { eventually } from '../../support/expect/eventually.js';
import {
  commandCounts,
  type LockInstance,
  resetCounts,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
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
    // The release, a rotation for every 32 of them, and the last release. Some room where a run of them takes long.
    expect((await commandCounts(admin())).evalsha).toBeLessThanOrEqual(4 + 10);
  });

  it('20 waiters in 20 instances cost one command a lease', async () => {
    const holder = await start();
    const instances = await Promise.all(Array.from({ length: 20 }, () => start()));
    const lease = await holder.locks.acquire('x', { leaseMs: 60_000 });
    const callers = instances.map(({ locks }) => locks.using('x', { waitMs: 60_000 }, () => undefined));
    await untilWaiting(holder.locks, 20);
    await resetCounts(admin());
    await lease.release();
    await Promise.all(callers);
    const { evalsha } = await commandCounts(admin());
    // A release for each, and the first one; some room for heartbeats on a slow machine.
    expect(evalsha).toBeLessThanOrEqual(21 + 20);
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it('is kept with few scripts, whatever leases the holders and the waiters have, behind readers and behind permits', async () => {
    const count = 128;
    /** How many scripts a process sends in some seconds for its waits, which wait for another process. */
    async function scriptsOf(
      kind: string,
      hold: (instance: LockInstance, name: string) => Promise<unknown>,
      wait: (instance: LockInstance, name: string) => Promise<unknown>,
    ): Promise<number> {
      const [holder, waiter] = [await start(), await start()];
      const names = Array.from({ length: count }, (_, index) => `${kind}-${index}`);
      await Promise.all(names.map((name) => hold(holder, name)));
      for (const name of names) wait(waiter, name).catch(() => {}); // until the end of the test
      const last = { instanceId: waiter.instanceId };
      for (const name of names) await untilQueued(holder, name, last);
      // Until the first leases would be over, and have been renewed.
      await setTimeout(3_000);
      const { store } = waiter;
      let scripts = 0;
      for (const verb of ['acquire', 'keepPlaces'] as const) {
        const send = store[verb].bind(store) as (...how: unknown[]) => Promise<never>;
        store[verb] = (...how: unknown[]) => (scripts++, send(...how));
      }
      await setTimeout(6_000);
      return scripts;
    }
    const lock = (options: LockOptions) => (instance: LockInstance, name: string) =>
      instance.locks.acquire(name, { waitMs: 60_000, ...options });
    const permit = ({ locks }: LockInstance, name: string) =>
      locks.semaphore(name, { permits: 1 }).acquire({ waitMs: 60_000, leaseMs: 2_000 });
    const scripts = await Promise.all([
      scriptsOf('same', lock({ leaseMs: 2_000 }), lock({ leaseMs: 2_000 })),
      scriptsOf('longer', lock({ leaseMs: 2_000 }), lock({ leaseMs: 8_000 })),
      scriptsOf('writers', lock({ leaseMs: 2_000, mode: 'read' }), lock({ leaseMs: 2_000, mode: 'write' })),
      scriptsOf('permits', permit, permit),
    ]);
    // One by one, each wait would look at least once in each of three leases. How few it can be is counted in virtual time,
    // in the test of PlaceKeeper: on a machine that stands still, a lease is renewed late, and some waits ask by themselves.
    expect([scripts, Math.max(...scripts) < 2 * count]).toEqual([scripts, true]);
    expect(scripts[0]).toBeGreaterThan(0);
  }, 60_000);
});
