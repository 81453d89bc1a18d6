import { LockQueueFullError } from '../../../lib/core/api/errors.js';
import type { LockOptions } from '../../../lib/core/api/lock-options.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import {
  expectNothingLeft,
  type LockInstance,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { track } from '../../support/expect/tracked.js';

describe('maxWaiters', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  const startMany = (count: number) => Promise.all(Array.from({ length: count }, () => start()));
  const refusal = ({ locks }: LockInstance, options: LockOptions) =>
    rejection<LockQueueFullError>(locks.acquire('x', { waitMs: 60_000, ...options }));
  const expectRefusal = (error: LockQueueFullError, where: string, maxWaiters: number): void => {
    expect(error).toBeInstanceOf(LockQueueFullError);
    expect(error).toMatchObject({ where, maxWaiters, resource: 'x' });
    expect(error.retryAfterMs).toBeGreaterThan(0);
    expect(error.retryAfterMs).toBeLessThanOrEqual(10_000);
  };

  it('bounds how many processes wait in Redis; who is refused is so at once, and those who wait are served', async () => {
    const [holder, a, b, c] = (await startMany(4)) as [LockInstance, LockInstance, LockInstance, LockInstance];
    const sections = new CriticalSections();
    const lease = await holder.locks.acquire('x');
    const calls = [sections.calls(5, a, { maxWaiters: 6 })];
    await untilQueued(holder, 'x', a);
    calls.push(sections.calls(5, b, { maxWaiters: 6 }));
    await untilQueued(holder, 'x', a, b);
    const from = performance.now();
    expectRefusal(await refusal(c, { maxWaiters: 2 }), 'redis', 2);
    expectRefusal(await refusal(c, { maxWaiters: 1 }), 'redis', 1);
    expect(performance.now() - from).toBeLessThan(5_000);
    // Those in front say themselves how many they accept.
    calls.push(sections.calls(1, c, { maxWaiters: 3 }));
    await untilQueued(holder, 'x', a, b, c);
    await lease.release();
    await Promise.all(calls);
    sections.expectSound(11);
    await expectNothingLeft(admin(), holder, a, b, c);
  });

  it('who stands in a full queue is not refused by his own heartbeat, or when his own turn is over', async () => {
    const instances = (await startMany(3)) as LockInstance[];
    const sections = new CriticalSections();
    const options = { maxWaiters: 2, leaseMs: 600, cohort: 0 };
    const slow = () => new Promise((resolve) => setTimeout(resolve, 250));
    const caller = async (instance: LockInstance): Promise<void> => {
      for (let i = 0; i < 2; i++) await sections.call(instance, options, slow);
    };
    await Promise.all(instances.map(caller));
    sections.expectSound(6);
    await expectNothingLeft(admin(), ...instances);
  });

  it('a place that has become free may be taken', async () => {
    const [holder, a, b] = (await startMany(3)) as [LockInstance, LockInstance, LockInstance];
    const lease = await holder.locks.acquire('x');
    const controller = new AbortController();
    const leaving = rejection(a.locks.acquire('x', { signal: controller.signal }));
    await untilQueued(holder, 'x', a);
    expectRefusal(await refusal(b, { maxWaiters: 1 }), 'redis', 1);
    controller.abort();
    await leaving;
    await untilQueued(holder, 'x');
    const waiting = b.locks.acquire('x', { maxWaiters: 1 });
    await untilQueued(holder, 'x', b);
    await lease.release();
    await (await waiting).release();
    await expectNothingLeft(admin(), holder, a, b);
  });

  it('the place of a process that died is free when its time is over', async () => {
    const [holder, a, b] = (await startMany(3)) as [LockInstance, LockInstance, LockInstance];
    const lease = await holder.locks.acquire('x');
    const victim = await startProcess(500);
    const dead = rejection(victim.ask('acquire', 'x'));
    await eventually(async () => expect((await holder.store.inspect('x')).waiters).toHaveLength(1));
    const patient = b.locks.acquire('x');
    await eventually(async () => expect((await holder.store.inspect('x')).waiters).toHaveLength(2));
    expectRefusal(await refusal(a, { maxWaiters: 2 }), 'redis', 2);
    await victim.kill();
    await dead;
    const waiting = await eventually(async () => {
      const call = track(a.locks.acquire('x', { maxWaiters: 2 }));
      await a.locks.inspect('x'); // the answer to the call comes before this one
      expect(call.state).toBe('pending');
      return call;
    });
    await lease.release();
    await (await patient).release();
    await eventually(() => waiting.value.release());
    await expectNothingLeft(admin(), holder, a, b);
  });

  it('bounds how many calls of one process wait, for a holder of its own or of another one', async () => {
    const [a, b] = (await startMany(2)) as [LockInstance, LockInstance];
    const sections = new CriticalSections();
    const lease = await a.locks.acquire('x');
    const calls = [a, b].map((instance) => sections.calls(3, instance, { maxWaiters: 3 }));
    await untilQueued(a, 'x', b);
    for (const instance of [a, b]) {
      await instance.locks.inspect('x'); // the reply before this one said when the lease ends
      expectRefusal(await refusal(instance, { maxWaiters: 3 }), 'process', 3);
      calls.push(sections.calls(1, instance, { maxWaiters: 4 }));
    }
    await lease.release();
    await Promise.all(calls);
    sections.expectSound(8);
    await expectNothingLeft(admin(), a, b);
  });
});
