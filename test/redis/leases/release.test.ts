import { LockUnavailableError } from '../../../lib/core/api/errors.js';
import { RELEASE } from '../../../lib/redis/script/scripts.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

describe('release only by the owner', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  it('a holder that was stopped past its lease releases nobody else’s lock', async () => {
    const stopped = await startProcess(300);
    await stopped.ask('acquire', 'x');
    const onContinue = stopped.ask('stop', 'x');
    const { locks } = await start();
    const next = await locks.acquire('x');
    expect(await stopped.continue(onContinue)).toMatchObject({ isHeld: false });
    await stopped.ask('release', 'x');
    expect(await next.verify()).toBe(true);
  });

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

  it('a release that never reached Redis frees the lock in the background', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks } = await start({ connection: proxy.url });
    const lease = await locks.acquire('x', { leaseMs: 60_000 });
    proxy.blackHole('toServer', 'commands');
    const outcome = rejection(lease.release());
    proxy.cut();
    expect(await outcome).toBeInstanceOf(LockUnavailableError);
    expect(await admin().exists('lock:{x}')).toBe(1);
    proxy.heal();
    await eventually(async () => expect(await admin().exists('lock:{x}')).toBe(0));
  });
});
