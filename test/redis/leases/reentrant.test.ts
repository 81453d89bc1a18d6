import { LockUnavailableError } from '../../../lib/core/api/errors.js';
import { SET_DEPTH } from '../../../lib/redis/script/scripts.js';
import { eventually } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

const REENTRANT = { mode: 'reentrant' } as const;

describe('the reentrant mode', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const depthInRedis = async (resource = 'a'): Promise<number> => {
    const owner = await admin().hget(`lock:{${resource}}`, 'owner');
    return owner === null ? 0 : Number((await admin().hget(`lock:{${resource}}`, 'depth')) ?? 1);
  };

  it('keeps the depth in a field of the hash; only the last release frees it', async () => {
    const { locks } = await start();
    const tokens: number[] = [];
    await locks.using('a', REENTRANT, async ({ fencingToken }) => {
      tokens.push(fencingToken);
      const owner = (await admin().hget('lock:{a}', 'owner'))!;
      expect(await admin().hget('lock:{a}', 'depth')).toBeNull();
      await locks.using('a', REENTRANT, async (inner) => {
        tokens.push(inner.fencingToken);
        await locks.using('a', REENTRANT, async () => {
          await eventually(async () => expect(await admin().hget('lock:{a}', 'depth')).toBe('3'));
        });
        await eventually(async () => expect(await admin().hget('lock:{a}', 'depth')).toBe('2'));
      });
      await eventually(async () => expect(await admin().hget('lock:{a}', 'depth')).toBe('1'));
      expect(await admin().hget('lock:{a}', 'owner')).toBe(owner);
    });
    expect(tokens[1]).toBe(tokens[0]);
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it('an entry whose reply is lost is counted once when it is tried again', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks } = await start({ connection: proxy.url });
    // Nothing else renews it, so an entry waits for the answer.
    await locks.using('a', { ...REENTRANT, watchdog: false }, async () => {
      await (await locks.acquire('a', REENTRANT)).release(); // Redis knows the script now
      await eventually(async () => expect(await depthInRedis()).toBe(1));
      const lost = proxy.loseReplyTo(SET_DEPTH.sha);
      await expect(locks.acquire('a', REENTRANT)).rejects.toBeInstanceOf(LockUnavailableError);
      await lost;
      const inner = await eventually(() => locks.acquire('a', REENTRANT));
      expect(await depthInRedis()).toBe(2);
      await inner.release();
      await eventually(async () => expect(await depthInRedis()).toBe(1));
    });
    await eventually(async () => expect(await depthInRedis()).toBe(0));
  });

  it('enters and leaves while Redis answers nothing', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks } = await start({ connection: proxy.url, defaults: { leaseMs: 60_000 } });
    await locks.using('a', REENTRANT, async () => {
      proxy.blackHole('toServer');
      const inner = await locks.acquire('a', REENTRANT);
      const innermost = await locks.acquire('a', REENTRANT);
      await innermost.release();
      expect(await depthInRedis()).toBe(1);
      proxy.heal();
      await eventually(async () => expect(await depthInRedis()).toBe(2));
      await inner.release();
      await eventually(async () => expect(await depthInRedis()).toBe(1));
    });
    expect(await depthInRedis()).toBe(0);
  });

  it('a leave whose reply is lost does not keep the lock: the last release frees it', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks } = await start({ connection: proxy.url, defaults: { leaseMs: 60_000 } });
    await locks.using('a', REENTRANT, async () => {
      const inner = await locks.acquire('a', REENTRANT);
      const lost = proxy.loseReplyTo(SET_DEPTH.sha);
      await inner.release();
      await lost;
    });
    await eventually(async () => expect(await admin().exists('lock:{a}')).toBe(0));
  });
});
