import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { expectNothingLeft, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate } from '../../support/expect/tracked.js';

const NEWEST: LockOptions = { cancellable: true, onBusy: 'cancelHolder', waitMs: 30_000, attemptTimeoutMs: 500 };

describe('an older call of a process that cannot reach Redis for a while', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it.each<[string, (proxy: TcpProxy) => void]>([
    ['its connections are cut', (proxy) => proxy.cut()],
    ['what it sends is lost', () => {}],
  ])('fails, and the result of the newer one stays: %s', async (_how, begin) => {
    await using proxy = await TcpProxy.start(redis().port);
    const [near, far] = [await start(), await start({ connection: proxy.url })];
    let stored = '';
    const store = (text: string) => (): void => void (stored = text);

    proxy.dropAll();
    begin(proxy);
    const older = rejection(far.locks.using('page', NEWEST, store('older')));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const end = gate();
    let isAborted = false;
    const newer = near.locks.using('page', NEWEST, async ({ signal }) => {
      signal.addEventListener('abort', () => (isAborted = true));
      await end.opened;
      stored = 'newer';
    });
    await eventually(async () => expect((await near.locks.inspect('page')).holders).toHaveLength(1));
    proxy.heal();
    expect(await older).toMatchObject({ reason: 'superseded', supersededBy: near.instanceId });
    end.open();
    await newer;
    expect([stored, isAborted]).toEqual(['newer', false]);
    expect(await admin().pttl('lock:{page}:newest')).toBeGreaterThan(0);
    await admin().del('lock:{page}:newest');
    await expectNothingLeft(admin(), near, far);
  });
});
