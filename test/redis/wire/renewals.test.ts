import { randomUUID } from 'node:crypto';
import { type LockOwner, PER_STEP } from '../../../lib/kernel/store/lock-store.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const LONG_MS = 60_000;
const PASSWORD = 'pw-5ecret-of-the-user';

describe('leases that are renewed in one turn of the event loop', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const opened: RedisLockStore[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((store) => store.close())));

  const setUser = (...rules: string[]) =>
    admin().call('ACL', 'SETUSER', 'app', 'on', `>${PASSWORD}`, '~*', '&*', '+@all', ...rules);
  const open = async (): Promise<RedisLockStore> => {
    await setUser();
    const connection = redis().url.replace('://', `://app:${PASSWORD}@`);
    const store = new RedisLockStore({ connection, keyPrefix: 'lock', instanceId: 'a', leaseMs: LONG_MS });
    opened.push(store);
    expect(await store.start(10_000)).toBe(true);
    return store;
  };
  const held = async (store: RedisLockStore, resource: string, mode: LockOwner['mode'] = 'exclusive') => {
    const permits = mode === 'semaphore' ? { count: 1, total: 2, isResized: false } : undefined;
    const owner: LockOwner = { resource, id: `${store.clientId}/${randomUUID()}`, mode, permits };
    expect(await store.acquire(owner, LONG_MS)).toMatchObject({ status: 'granted' });
    return owner;
  };
  const renewAll = (store: RedisLockStore, owners: readonly LockOwner[]) =>
    Promise.all(owners.map((owner) => store.renew(owner, 2 * LONG_MS).catch((error: unknown) => error)));
  const refused = (message: RegExp) =>
    expect.objectContaining({ failure: 'refused', message: expect.stringMatching(message) });
  const scripts = async (): Promise<number> => {
    const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await admin().info('commandstats')) ?? [];
    return Number(calls);
  };

  it(`share a script, ${PER_STEP} at most`, async () => {
    const store = await open();
    const owners: LockOwner[] = [];
    for (let i = 0; i <= PER_STEP; i++) owners.push(await held(store, `order:${i}`));
    await renewAll(store, owners.slice(0, 1)); // loads the script
    for (const [count, expected] of [
      [1, 1],
      [PER_STEP, 1],
      [PER_STEP + 1, 2],
    ] as const) {
      const before = await scripts();
      expect(await renewAll(store, owners.slice(0, count))).toEqual(Array(count).fill(true));
      expect((await scripts()) - before).toBe(expected);
    }
  });

  it('are lost one by one: deleted, or replaced by another program', async () => {
    const store = await open();
    const owners: LockOwner[] = [];
    for (const resource of ['a', 'b', 'c', 'd', 'e']) owners.push(await held(store, resource));
    await admin().del('lock:{b}', 'lock:{d}', 'lock:{e}');
    await admin().rpush('lock:{d}', 'mine');
    await admin().hset('lock:{e}', 'mine', 1);
    expect(await renewAll(store, owners)).toEqual([true, false, true, false, false]);
    expect(await admin().pttl('lock:{c}')).toBeGreaterThan(LONG_MS);
  });

  it('are refused one by one: the user may not use a key any more', async () => {
    const store = await open();
    const owners = [await held(store, 'a'), await held(store, 'b'), await held(store, 'c')];
    await setUser('resetkeys', '~lock:{a}*', '~lock:{c}*', '~lock:fence');
    const noperm = refused(/NOPERM|can't access/);
    expect(await renewAll(store, owners)).toEqual([true, noperm, true]);
    for (const resource of ['a', 'c']) expect(await admin().pttl(`lock:{${resource}}`)).toBeGreaterThan(LONG_MS);
  });

  it('are refused one by one: the user may not use the command that a mode needs', async () => {
    const store = await open();
    const owners = [await held(store, 'a', 'reentrant'), await held(store, 'b'), await held(store, 'c', 'read')];
    await setUser('-hmget');
    const noperm = refused(/NOPERM|can't run/);
    expect(await renewAll(store, owners)).toEqual([noperm, true, noperm]);
  });

  it('are all refused if the user may renew nothing', async () => {
    const store = await open();
    const owners = [await held(store, 'a'), await held(store, 'b')];
    await setUser('-pexpire');
    const noperm = refused(/NOPERM|can't run/);
    expect(await renewAll(store, owners)).toEqual([noperm, noperm]);
  });

  it('are renewed in every mode without memory to spare', async () => {
    const store = await open();
    const modes = ['exclusive', 'reentrant', 'write', 'read', 'semaphore'] as const;
    const owners: LockOwner[] = [];
    for (const mode of modes) owners.push(await held(store, mode, mode));
    await admin().config('SET', 'maxmemory', '1');
    try {
      expect(await renewAll(store, owners)).toEqual(modes.map(() => true));
    } finally {
      await admin().config('SET', 'maxmemory', '0');
    }
  });

  it('have the same fate if the connection breaks', async () => {
    const store = await open();
    const owners = [await held(store, 'a'), await held(store, 'b')];
    await redis().pause();
    const renewed = renewAll(store, owners);
    await redis().kill();
    for (const error of await renewed) {
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ failure: 'unknown' });
    }
    await redis().restart();
  });
});
