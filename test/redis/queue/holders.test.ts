import type { LockBusyError, LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import type { LockOwner } from '../../../lib/kernel/store/lock-store.js';
import { rejection } from '../../support/expect/eventually.js';
import {
  commandCounts,
  type LockInstance,
  resetCounts,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('what Redis says of the holders', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const permits = (count: number, total: number) =>
    ({ mode: 'semaphore', permits: { count, total, isResized: false } }) as const;
  const ask = ({ store }: LockInstance, wish: Pick<LockOwner, 'mode' | 'permits'>) =>
    store.acquire({ resource: 'a', id: `${store.clientId}/asks`, ...wish }, 5_000, { sentAt: 1, maxWaiters: 100 });
  const counted = async (command: () => Promise<unknown>): Promise<Record<string, number>> => {
    await resetCounts(admin());
    await command();
    const { info: _, config: __, evalsha: ___, eval: ____, ...inScripts } = await commandCounts(admin());
    return inScripts;
  };

  it('costs no command for one holder, or for a free lock', async () => {
    const [holder, other] = [await start(), await start()];
    await ask(other, { mode: 'write' });
    expect(await counted(() => holder.locks.acquire('b'))).toEqual({
      time: 1,
      exists: 1,
      incrby: 1,
      set: expect.any(Number),
    });
    const lease = await holder.locks.acquire('c');
    expect(await counted(() => lease.release())).toEqual({ get: 1, exists: 1, del: 1 });
    const waits = (resource: string, sentAt = 1) =>
      other.store.acquire({ resource, id: `${other.store.clientId}/w`, mode: 'exclusive' }, 5_000, {
        sentAt,
        maxWaiters: 9,
      });
    // Joins the queue; then keeps its place.
    expect(await counted(() => waits('b'))).toEqual({
      time: 1,
      exists: 1,
      zscore: 1,
      get: 1,
      pttl: 2,
      zcard: 1,
      pexpire: 2,
      zadd: 1,
    });
    expect({ pexpire: 0, ...(await counted(() => waits('b', 2))) }).toEqual({
      zcount: 1, // its place in line
      pexpire: expect.any(Number),
      time: 1,
      exists: 1,
      zscore: 1,
      get: 1,
      pttl: 2,
      zrange: 2, // its own place, and which of all places is over first
      zadd: 1,
      zrem: 1,
    });
  });

  it('costs one command for shared locks, two if there are more holders than it names', async () => {
    const [holder, other] = [await start(), await start()];
    for (const [holders, expected] of [
      [3, { hrandfield: 1 }],
      [300, { hrandfield: 1, hlen: 1 }],
      [3_000, { hrandfield: 1, hlen: 1 }],
    ] as const) {
      await admin().flushall();
      const { store } = holder;
      await Promise.all(
        Array.from({ length: holders }, (_, i) =>
          store.acquire({ resource: 'a', id: `${store.clientId}/${i}`, ...permits(1, holders) }, 60_000),
        ),
      );
      const { hrandfield, hlen } = (await counted(() => ask(other, permits(1, holders)))) as Record<string, number>;
      expect({ hrandfield, ...(hlen && { hlen }) }).toEqual(expected);
      expect(await ask(other, permits(1, holders))).toMatchObject({ status: 'queued', seen: { holderCount: holders } });
    }
  });

  it('works without permission for HRANDFIELD, except for shared locks', async () => {
    const rules = ['on', 'nopass', '~*', '&*', '+@all', '-hrandfield'];
    await admin().call('ACL', 'SETUSER', 'app', 'reset', ...rules);
    const holder = await start();
    const other = await start({ connection: redis().url.replace('://', '://app:x@') });
    await holder.locks.acquire('alone');
    await holder.locks.acquire('shared', { mode: 'read' });
    const alone = await rejection<LockBusyError>(other.locks.acquire('alone', { waitMs: 0 }));
    expect(alone.holders).toMatchObject([{ instanceId: holder.instanceId }]);
    const shared = await rejection<LockTimeoutError>(other.locks.acquire('shared', { mode: 'write', waitMs: 1_000 }));
    expect(shared).toMatchObject({ code: 'LOCK_TIMEOUT', holders: [], holderCount: 0 });
    expect(shared.message).toMatch(/^"shared" was not free within \d/);
  });

  describe('if another program has written the lock', () => {
    const hostile: [string, (key: string) => Promise<unknown>, object][] = [
      [
        'no slash in the owner',
        (key) => admin().set(key, 'secret 32 5000', 'PX', 60_000),
        { holders: [], holderCount: 0 },
      ],
      [
        'a token that is no number',
        (key) => admin().set(key, `a/b/c ${'9'.repeat(400)} 5000`, 'PX', 60_000),
        { holders: [], holderCount: 0 },
      ],
      [
        'a token of the future',
        (key) => admin().set(key, 'a/b/c 9007199254740991 5000', 'PX', 60_000),
        { holderCount: 1, holders: [{ instanceId: 'a', heldMs: 0, fencingToken: 9_007_199_254_740_991 }] },
      ],
      ['no lease', (key) => hash(key, { mode: 'write', owner: 'a/b/c', token: '32' }), { holders: [], holderCount: 0 }],
      [
        'a lease that is no number',
        (key) => hash(key, { mode: 'write', owner: 'a/b/c', token: '32', about: 'nan {"a":1}' }),
        { holders: [], holderCount: 0 },
      ],
      [
        'a depth that is no number',
        (key) => hash(key, { mode: 'write', owner: 'a/b/c', token: '32', about: '5000', depth: 'nan\nx/y 1 2 3' }),
        { holders: [], holderCount: 0 },
      ],
      ['no token', (key) => hash(key, { mode: 'write', owner: 'a/b/c' }), { holders: [], holderCount: 0 }],
      [
        'a token like "nan"',
        (key) => hash(key, { mode: 'write', owner: 'a/b/c', token: 'nan', about: '5000' }),
        { holders: [], holderCount: 0 },
      ],
      [
        'a mode of its own',
        (key) => hash(key, { mode: 'x'.repeat(5_000), owner: 'a/b/c', token: '32', about: '5000' }),
        { holders: [], holderCount: 0 },
      ],
      [
        'an owner with spaces',
        (key) => hash(key, { mode: 'write', owner: 'a b/c 1 2 3/d', token: '32', about: '5000' }),
        { holders: [], holderCount: 0 },
      ],
      [
        'a long name',
        (key) => hash(key, { mode: 'write', owner: `${'x'.repeat(5_000)}/b/c`, token: '32', about: '5000' }),
        { holderCount: 1, holders: [{ instanceId: 'x'.repeat(200) }] },
      ],
      [
        'a name that moves the cursor',
        (key) => hash(key, { mode: 'write', owner: '\u001b[2J\u202e/b/c', token: '32', about: '5000' }),
        { holderCount: 1, holders: [{ instanceId: '\u001b[2J\u202e' }] },
      ],
      [
        'how many share it, but none of them',
        (key) => hash(key, { mode: 'read', used: '7', soonest: '9000000000000000' }),
        { holders: [], holderCount: 0 },
      ],
      [
        'members of any kind',
        (key) =>
          hash(key, {
            mode: 'semaphore',
            used: '9',
            soonest: '9000000000000000',
            total: '9',
            resized: '0',
            'no slash': '1 32 9000000000000000 5000',
            'j/k/l': '1 64 9000000000000000',
            'a/b/c': '1 32 9000000000000000 5000',
            'd/e/f': 'x 1 1',
            'g/h/i': `1 ${'9'.repeat(30)} 9000000000000000 5000`,
          }),
        { holders: [{ instanceId: 'a', fencingToken: 32, permits: 1 }] },
      ],
    ];
    const hash = (key: string, fields: Record<string, string>) =>
      admin().multi().hset(key, fields).pexpire(key, 60_000).exec();

    it.each(hostile)('%s: no more is believed than can be', async (_, write, seen) => {
      const { locks } = await start();
      await write('lock:{a}');
      const wish =
        (await admin()
          .hget('lock:{a}', 'mode')
          .catch(() => null)) === 'semaphore';
      const busy = wish
        ? locks.semaphore('a', { permits: 9 }).acquire({ waitMs: 0 })
        : locks.acquire('a', { waitMs: 0 });
      const error = await rejection<LockBusyError>(busy);
      expect(error.code).toBe('LOCK_BUSY');
      expect(error).toMatchObject(seen);
      expect(error.message).not.toMatch(/[\u001b\u202e]|secret/);
      expect(error.message.length).toBeLessThan(400);
    });
  });
});
