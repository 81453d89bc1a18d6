import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('a lease in Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it('extend makes the lease longer, in Redis and here, and the watchdog keeps to it', async () => {
    const { locks } = await start();
    const lease = await locks.acquire('x', { leaseMs: 5_000, watchdog: false });
    await lease.extend(60_000);
    expect(await admin().pttl('lock:{x}')).toBeGreaterThan(50_000);
    expect(lease.remainingMs()).toBeGreaterThan(50_000);
    expect(lease.remainingMs()).toBeLessThan(await admin().pttl('lock:{x}'));
    await lease.extend(1_000);
    expect(await admin().pttl('lock:{x}')).toBeLessThanOrEqual(1_000);
    expect(lease.remainingMs()).toBeLessThanOrEqual(1_000);
  });
});
