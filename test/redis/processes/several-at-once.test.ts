import type { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { track } from '../../support/expect/tracked.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const ALL = ['a', 'b', 'c', 'd', 'e'];
const LOCKS = ALL.map((name) => `lock:{${name}}`);

describe('several resources of one Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const held = async (): Promise<string[]> => (await admin().keys('lock:{*')).sort();
  const expectNothingLeft = () => eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));

  it('cost one script each, and another one when they are released', async () => {
    const { locks } = await start();
    await (await locks.acquire(ALL)).release();
    await resetCounts(admin());
    const lease = await locks.acquire(ALL);
    const acquired = await commandCounts(admin());
    // One EXISTS and one SET for each, and one more SET for the fence in each new millisecond.
    expect(acquired).toMatchObject({ evalsha: ALL.length, exists: ALL.length });
    expect(acquired.eval).toBeUndefined();
    expect(acquired.set).toBeLessThanOrEqual(2 * ALL.length);
    await lease.release();
    const { evalsha, eval: evals, publish } = await commandCounts(admin());
    expect([evalsha, evals, publish]).toEqual([2 * ALL.length, undefined, undefined]);
    await expectNothingLeft();
  });

  it('take one round trip, and one to be released', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks } = await start({
      connection: `redis://127.0.0.1:${proxy.port}`,
      defaults: { attemptTimeoutMs: 30_000 },
    });
    await (await locks.acquire(ALL)).release();
    // From here on Redis executes what arrives, and no answer comes back.
    proxy.blackHole('toClient');
    const acquiring = track(locks.acquire(ALL));
    await eventually(async () => expect(await held()).toEqual(LOCKS));
    expect(acquiring.state).toBe('pending');
    proxy.heal();
    await eventually(() => expect(acquiring.state).toBe('fulfilled'));
    proxy.blackHole('toClient');
    const releasing = track(acquiring.value.release());
    await expectNothingLeft();
    expect(releasing.state).toBe('pending');
    proxy.heal();
    await eventually(() => expect(releasing.state).toBe('fulfilled'));
  });

  it.each(['exclusive', 'read'] as const)('write what single ones write (%s)', async (mode) => {
    const { locks, instanceId } = await start();
    /** The content of a key, without the parts that differ from lease to lease. */
    const contents = async (name: string): Promise<unknown> => {
      const key = `lock:{${name}}`;
      const isText = (await admin().type(key)) === 'string';
      const texts = isText ? [await admin().get(key)] : Object.entries(await admin().hgetall(key)).flat();
      const ttl = await admin().pttl(key);
      const soon = Date.now();
      return [
        Math.round(ttl / 10_000),
        texts.map((text) =>
          text!.replace(/(\w+)\/[\w-]{4}\/[\w-]{12}/, '$1/OWNER').replace(/\d{13,}/g, (number) => {
            const isTime = Math.abs(Number(number) - soon) < 60_000;
            return isTime ? 'TIME' : 'TOKEN';
          }),
        ),
      ];
    };
    for (const label of [undefined, { group: 'Orders.pay' }]) {
      const options = { mode, label, leaseMs: 40_000 };
      const [single, several] = [await locks.acquire('single', options), await locks.acquire(ALL, options)];
      expect(JSON.stringify(await contents('single'))).toContain(`${instanceId.slice(-8)}/OWNER`);
      for (const name of ALL) expect(await contents(name)).toEqual(await contents('single'));
      for (const name of ALL) {
        const key = `lock:{${name}}`;
        const text = (await admin().type(key)) === 'string' ? await admin().get(key) : await admin().hgetall(key);
        expect(JSON.stringify(text)).toContain(String(several.fencingTokenOf(name)));
      }
      await Promise.all([single.release(), several.release()]);
      await expectNothingLeft();
    }
  });

  it('are acquired after Redis has forgotten the script', async () => {
    const { locks } = await start();
    await admin().script('FLUSH');
    const lease = await locks.acquire(ALL);
    expect(await held()).toEqual(LOCKS);
    await lease.release();
  });

  it('stop at a key of another program: the error names it, and nothing is left', async () => {
    const { locks } = await start();
    await admin().rpush('lock:{c}', 'mine');
    const error = await rejection<LockUnavailableError>(locks.acquire(ALL));
    expect(error.message).toMatch(/^Redis could not acquire "c": WRONGTYPE/);
    await eventually(async () => expect(await held()).toEqual(['lock:{c}']));
  });
});
