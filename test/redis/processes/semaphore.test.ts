import { eventually, rejection } from '../../support/expect/eventually.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { type LockInstance, useAdmin, useInstances, untilQueued } from '../../support/redis/lock-instances.js';
import { type LockProcess, useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { track } from '../../support/expect/tracked.js';

/** A heartbeat is due after 1 to 1.25 s; the rest is for a busy machine. Who survives has a lease of a minute. */
const HEARTBEAT_MS = 1_250 + 3_000;
const LONG_MS = 60_000;
const of3 = (count: number) => ({ permits: 3, count, waitMs: 60_000 });

describe('holders of permits that are killed', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  let watch: LockInstance;
  beforeEach(async () => void (watch = await start()));

  const processes = <T extends number[]>(...leases: T) =>
    Promise.all(leases.map((leaseMs) => startProcess(leaseMs))) as Promise<{ [K in keyof T]: LockProcess }>;
  const untilTheyWait = (...waiters: LockProcess[]) => untilQueued(watch, 'x', ...waiters);
  const available = () => watch.locks.semaphore('x', { permits: 3 }).available();
  const expectNothingLeft = () => eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));

  it('two of three permits are free again when the lease and a heartbeat are over; the third is not touched', async () => {
    const [victim, other, next] = await processes(1_500, LONG_MS, LONG_MS);
    await victim.ask('acquire', 'x', of3(2));
    await other.ask('acquire', 'x', of3(1));
    const waiting = track(next.ask('acquire', 'x', of3(2)));
    await untilTheyWait(next);
    expect(await available()).toBe(0);
    const from = performance.now();
    await victim.kill();
    await eventually(() => expect(waiting.value.isHeld).toBe(true));
    expect(performance.now() - from).toBeLessThan(1_500 + HEARTBEAT_MS);
    expect(await other.ask('state', 'x')).toMatchObject({ isHeld: true, aborted: false });
    expect(await available()).toBe(0);
    await other.ask('release', 'x');
    expect(await available()).toBe(1);
    await next.ask('release', 'x');
    await expectNothingLeft();
  });

  it('one that was granted and whose message is on the way: its permits are free after its lease', async () => {
    const [holder, victim, next] = await processes(LONG_MS, 1_500, LONG_MS);
    await holder.ask('acquire', 'x', of3(3));
    const lost = rejection(victim.ask('acquire', 'x', of3(2)));
    await untilTheyWait(victim);
    const waiting = next.ask('acquire', 'x', of3(3));
    await untilTheyWait(victim, next);
    victim.suspend(); // it never learns of it
    await holder.ask('release', 'x');
    await eventually(async () => {
      expect(instancesOf((await watch.locks.inspect('x')).waiters)).toEqual([next.instanceId]);
    });
    expect(await available()).toBe(1);
    const from = performance.now();
    await victim.kill();
    await lost;
    expect((await waiting).isHeld).toBe(true);
    expect(performance.now() - from).toBeLessThan(1_500 + HEARTBEAT_MS);
    await next.ask('release', 'x');
    await expectNothingLeft();
  });

  it('all of them: a place that outlives the permits does not say how many there are', async () => {
    const { store } = watch;
    const dead = (name: string, count: number) => ({
      resource: 'x',
      id: `dead/${name}`,
      mode: 'semaphore' as const,
      permits: { count, total: 3, isResized: false },
    });
    const queueing = { sentAt: 0, maxWaiters: 10 };
    await store.acquire(dead('holder', 3), 1_000);
    await store.acquire(dead('waiter', 1), LONG_MS, queueing);
    await eventually(async () => expect((await watch.locks.inspect('x')).mode).toBeNull());
    const lease = await watch.locks.semaphore('x', { permits: 5 }).acquire({ count: 5 });
    expect((await watch.locks.inspect('x')).permits).toEqual({ total: 5, available: 0 });
    await lease.release();
    await expectNothingLeft();
  });
});
