import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { RELEASE } from '../../../lib/redis/script/scripts.js';
import { eventually } from '../../support/expect/eventually.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

describe('release only by the owner', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it('a release whose reply is lost is sent again until it is answered', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks, events } = await start({ connection: proxy.url });
    await (await locks.acquire('warm-up')).release();
    const lease = await locks.acquire('x');
    await resetCounts(admin());
    const lost = proxy.loseReplyTo(RELEASE.sha);
    await expect(lease.release()).rejects.toBeInstanceOf(LockUnavailableError);
    await lost;
    expect(events.at(-1)).toMatchObject({ type: 'releaseFailed' });
    // Meanwhile the lock is somebody else's, and the second release leaves it alone.
    const next = await (await start()).locks.acquire('x');
    const expected = 3; // the lost release, the acquire, and the release again
    await eventually(async () => expect((await commandCounts(admin())).evalsha).toBeGreaterThanOrEqual(expected));
    expect(await next.verify()).toBe(true);
  });
});
