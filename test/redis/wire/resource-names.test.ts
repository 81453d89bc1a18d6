import { InvalidLockOptionsError } from '../../../lib/core/api/errors.js';
import { eventually } from '../../support/expect/eventually.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { take, type TakeOptions } from '../../support/expect/mixed-sections.js';
import { useRedis } from '../../support/redis/redis-server.js';

const HOSTILE = [
  'plain',
  'Plain',
  'with space',
  ' ',
  'a:b',
  'a:b:waiters',
  'a}:waiters',
  '{a}',
  'a',
  '}{',
  '{}',
  '%7B',
  '%257B',
  '{',
  '%',
  'new\nline',
  'new\r\nline',
  'nul\0byte',
  'nul',
  '\u007f',
  'emoji 🔒',
  'e\u0301',
  '\u00e9',
  '__proto__',
  'constructor',
  'fence',
  'inbox:x',
  'undefined',
  '*',
  '"quoted\'',
  '\u2028',
  'ü'.repeat(256), // 512 bytes
  'x'.repeat(511),
  'x'.repeat(512),
];

describe('hostile resource names', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const instances = useInstances(() => redis().url);
  const start = () => instances({ unclearNames: 'allow' });

  it('are different locks, each with a key and a waiters key of its own', async () => {
    const { locks, store } = await start();
    const keys = HOSTILE.flatMap((name) => [store.keys.lock(name), store.keys.waiters(name)]);
    expect(new Set([...keys, store.keys.fence('')]).size).toBe(2 * HOSTILE.length + 1);

    const leases = [];
    for (const name of HOSTILE) leases.push((await locks.tryAcquire(name, { waitMs: 0 }))!);
    expect(leases.every((lease) => lease?.isHeld())).toBe(true);
    expect(await admin().dbsize()).toBe(HOSTILE.length + 1);
    for (const name of HOSTILE) expect(await locks.tryAcquire(name)).toBeNull();
    for (const [i, name] of HOSTILE.entries()) {
      const { resource, holders } = await locks.inspect(name);
      expect([resource, holders[0]!.fencingToken]).toEqual([name, leases[i]!.fencingToken]);
    }
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it('hash to one slot each: the tag is the whole encoded name', async () => {
    const { store } = await start();
    for (const name of HOSTILE) {
      for (const key of [store.keys.lock(name), store.keys.waiters(name)]) {
        expect(key.indexOf('{')).toBe(key.lastIndexOf('{'));
        expect(key.indexOf('}')).toBe(key.lastIndexOf('}'));
        expect(key.indexOf('}')).toBeGreaterThan(key.indexOf('{') + 1);
      }
    }
  });

  it('are waited for and granted by their own release', async () => {
    const [a, b] = [await start(), await start()];
    const leases = await Promise.all(HOSTILE.map((name) => a.locks.acquire(name, { leaseMs: 60_000 })));
    const waiting = HOSTILE.map((name) => b.locks.acquire(name, { waitMs: 60_000 }));
    await eventually(async () => {
      for (const name of HOSTILE) expect(instancesOf((await a.locks.inspect(name)).waiters)).toEqual([b.instanceId]);
    });
    const told: string[] = [];
    b.store.listen({ granted: ({ resource }) => told.push(resource), reconnected: () => {} });
    for (const lease of leases) await lease.release();
    const granted = await Promise.all(waiting);
    expect(granted.map(({ resource }) => resource)).toEqual(HOSTILE);
    expect(new Set(told)).toEqual(new Set(HOSTILE));
    await Promise.all(granted.map((lease) => lease.release()));
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it('work in reentrant mode too', async () => {
    const { locks } = await start();
    for (const name of HOSTILE) {
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
  ])(
    'work in the other modes too: shared, waited for, listed, transferred and ended (%s)',
    async (_what, held, next) => {
      const [a, b] = [await start(), await start()];
      const leases = await Promise.all(HOSTILE.map((name) => take(a.locks, name, { ...held, leaseMs: 60_000 })));
      const waiting = HOSTILE.map((name) => take(b.locks, name, { ...next, waitMs: 60_000 }));
      await eventually(async () => {
        const states = await a.locks.operators.list({ limit: 1_000 });
        expect(states.map(({ resource }) => resource)).toEqual([...HOSTILE].sort());
        for (const { waiters } of states) expect(instancesOf(waiters)).toEqual([b.instanceId]);
      });
      for (const lease of leases) await lease.release();
      for (const [i, lease] of (await Promise.all(waiting)).entries()) {
        const adopted = await a.locks.adopt(await lease.transfer());
        const { fencingToken } = adopted;
        expect(adopted.resource).toBe(HOSTILE[i]);
        expect(await b.locks.operators.forceRelease(HOSTILE[i]!, { fencingToken })).toBe(true);
      }
      expect(await admin().keys('*')).toEqual(['lock:fence']);
    },
  );

  it.each([
    ['513 bytes', 'x'.repeat(513)],
    ['513 bytes of UTF-8', 'ü'.repeat(256) + 'x'],
    ['empty', ''],
    ['a lone surrogate', 'a\ud800'],
    ['undefined', undefined],
    ['an object', {}],
    ['an empty array', []],
  ])('are refused before Redis is asked: %s', async (_what, name) => {
    const { locks } = await start();
    await expect(locks.acquire(name as string)).rejects.toBeInstanceOf(InvalidLockOptionsError);
    expect(await admin().dbsize()).toBe(0);
  });
});
