import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { eventually } from '../../support/expect/eventually.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { HOSTILE_NAMES } from '../../support/names/hostile-names.js';
import { take, type TakeOptions } from '../../support/expect/mixed-sections.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('hostile resource names', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const instances = useInstances(() => redis().url);
  const start = () => instances({ unclearNames: 'allow' });

  it('work in reentrant mode too', async () => {
    const { locks } = await start();
    for (const name of HOSTILE_NAMES) {
      await locks.using(name, { mode: 'reentrant' }, async () => {
        await locks.using(name, { mode: 'reentrant' }, async () => {
          await eventually(async () => {
            expect(await locks.inspect(name)).toMatchObject({ holders: [{ depth: 2 }] });
          });
        });
      });
    }
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it.each<[string, TakeOptions, TakeOptions]>([
    ['read behind write', { mode: 'write' }, { mode: 'read' }],
    ['write behind read', { mode: 'read' }, { mode: 'write' }],
    ['permits', { permits: 2, count: 2 }, { permits: 2 }],
  ])('work in the other modes too: shared, waited for, listed and ended (%s)', async (_what, held, next) => {
    const [a, b] = [await start(), await start()];
    const leases = await Promise.all(HOSTILE_NAMES.map((name) => take(a.locks, name, { ...held, leaseMs: 60_000 })));
    const waiting = HOSTILE_NAMES.map((name) => take(b.locks, name, { ...next, waitMs: 60_000 }));
    await eventually(async () => {
      const states = await a.locks.operators.list({ limit: 1_000 });
      expect(states.map(({ resource }) => resource)).toEqual([...HOSTILE_NAMES].sort());
      for (const { waiters } of states) expect(instancesOf(waiters)).toEqual([b.instanceId]);
    });
    for (const lease of leases) await lease.release();
    for (const [i, lease] of (await Promise.all(waiting)).entries()) {
      const { fencingToken } = lease;
      expect(lease.resource).toBe(HOSTILE_NAMES[i]);
      expect(await b.locks.operators.forceRelease(HOSTILE_NAMES[i]!, { fencingToken })).toBe(true);
    }
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it.each([
    ['undefined', undefined],
    ['an object', {}],
    ['an empty array', []],
  ])('are refused before Redis is asked: %s', async (_what, name) => {
    const { locks } = await start();
    await expect(locks.acquire(name as string)).rejects.toBeInstanceOf(InvalidLockOptionsError);
    expect(await admin().dbsize()).toBe(0);
  });
});
