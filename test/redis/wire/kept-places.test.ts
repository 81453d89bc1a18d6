import { randomUUID } from 'node:crypto';
import { type KeptPlace, type LockOwner } from '../../../lib/kernel/store/lock-store.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import type { RedisConnectionOption } from '../../../lib/redis/connection/connection-options.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { rejection } from '../../support/expect/eventually.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { lockConnection } from '../../support/redis/lock-user.js';
import { useRedis } from '../../support/redis/redis-server.js';

const LONG_MS = 60_000;

describe('places that are kept in one step', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const opened: RedisLockStore[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((store) => store.close())));

  const open = async (connection: RedisConnectionOption = lockConnection(redis().url)): Promise<RedisLockStore> => {
    const instanceId = `store-${randomUUID().slice(0, 8)}`;
    const store = new RedisLockStore({ connection, keyPrefix: 'lock', instanceId, leaseMs: LONG_MS });
    opened.push(store);
    expect(await store.start(10_000)).toBe(true);
    return store;
  };
  /** Each resource has a holder, and this store waits. */
  const waiting = async (store: RedisLockStore, resources: readonly string[]): Promise<KeptPlace[]> => {
    const places: KeptPlace[] = [];
    for (const resource of resources) {
      const holder: LockOwner = { resource, id: `holder/1/${randomUUID()}`, mode: 'exclusive' };
      expect(await store.acquire(holder, LONG_MS)).toMatchObject({ status: 'granted' });
      const waiter: LockOwner = { resource, id: `${store.clientId}/${randomUUID()}`, mode: 'exclusive' };
      await store.acquire(waiter, LONG_MS, { sentAt: 1, maxWaiters: 10 });
      places.push({ waiter, leaseMs: 2 * LONG_MS });
    }
    return places;
  };
  const placeMsOf = async (store: RedisLockStore, resource: string): Promise<number> => {
    const { waiters } = await store.inspect(resource);
    return waiters[0]!.placeMs!;
  };
  const refused = (message: RegExp) =>
    expect.objectContaining({ name: 'LockStoreError', failure: 'refused', message: expect.stringMatching(message) });

  it.each(['lock:{b}', 'lock:{b}:waiters'])('fail one by one: another program has %s', async (key) => {
    const store = await open();
    const places = await waiting(store, ['a', 'b', 'c']);
    await admin().multi().del(key).rpush(key, 'mine').exec();
    const replies = await store.keepPlaces(places, 2);
    const kept = expect.objectContaining({ status: 'kept', place: 1 });
    expect(replies).toEqual([kept, refused(/WRONGTYPE.*choose another key/), kept]);
    for (const resource of ['a', 'c']) expect(await placeMsOf(store, resource)).toBeGreaterThan(LONG_MS);
  });

  it('fail together if the server cannot write, and change nothing', async () => {
    const store = await open();
    const places = await waiting(store, ['a', 'b']);
    await admin().config('SET', 'maxmemory', '1');
    try {
      const error = await rejection<LockStoreError>(store.keepPlaces(places, 2));
      expect(error).toMatchObject({ failure: 'notExecuted', message: expect.stringMatching(/OOM/) });
    } finally {
      await admin().config('SET', 'maxmemory', '0');
    }
    for (const resource of ['a', 'b']) expect(await placeMsOf(store, resource)).toBeLessThanOrEqual(LONG_MS);
  });
});
