import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import {
  commandCounts,
  type LockInstance,
  resetCounts,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('leases that stay in the process', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  /** So many calls of `b` wait for what `a` holds; then they run. Gives how many scripts Redis was asked to run for it. */
  const run = async (a: LockInstance, b: LockInstance, count: number, options: LockOptions) => {
    const sections = new CriticalSections();
    const lease = await a.locks.acquire('x');
    const calls = sections.calls(count, b, options);
    await untilQueued(a, 'x', b);
    await resetCounts(admin());
    await lease.release();
    await calls;
    sections.expectSound(count);
    return { rows: sections.rows(), commands: (await commandCounts(admin())).evalsha! };
  };

  it('300 calls that wait in one process cost Redis a command for each row of them', async () => {
    const { rows, commands } = await run(await start(), await start(), 300, {});
    // On a slow machine a row ends after fewer than 32.
    expect(Math.max(...rows)).toBeLessThanOrEqual(32);
    expect(rows.length).toBeLessThan(1 + 300 / 2);
    expect(commands).toBeLessThanOrEqual(1 + rows.length + 2);
  });

  it('in strict turns, a lease of an instance that waits again costs one command', async () => {
    const instances = await Promise.all([start(), start(), start()]);
    const sections = new CriticalSections();
    await sections.call(instances[0]!);
    await resetCounts(admin());
    const caller = async (instance: LockInstance): Promise<void> => {
      for (let i = 0; i < 10; i++) await sections.call(instance, { strictOrder: true });
    };
    await Promise.all([...instances, ...instances, ...instances].map(caller));
    sections.expectSound(91);
    const { evalsha } = await commandCounts(admin());
    // Not two, as without a rotation. Each instance comes and goes once, and heartbeats fall in on a slow machine.
    expect(evalsha).toBeGreaterThanOrEqual(90);
    expect(evalsha).toBeLessThan(90 * 1.4);
  });
});
