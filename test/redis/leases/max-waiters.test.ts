import { LockQueueFullError } from '../../../lib/core/api/errors.js';
import type { LockOptions } from '../../../lib/core/api/lock-options.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { expectNothingLeft, type LockInstance, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
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
});
