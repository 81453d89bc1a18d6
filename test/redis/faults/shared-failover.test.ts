import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockOwner } from '../../../lib/kernel/store/lock-store.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { lockConnection } from '../../support/redis/lock-user.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('a lock with very many members, of which some have ended', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  let store: RedisLockStore;

  beforeEach(async () => {
    store = new RedisLockStore({
      connection: lockConnection(redis().url),
      keyPrefix: `sweep-${randomUUID()}`,
      instanceId: 'a',
      leaseMs: 60_000,
    });
    expect(await store.start(10_000)).toBe(true);
  });
  afterEach(() => store.close());

  // Members are visited page by page, with a cursor of HSCAN. After a restart or a failover, the hash has another seed,
  // so the cursor skips other members than the visited ones.
  it('keeps the members whom a cursor of another server has passed over', async () => {
    const reader = (owner: string): LockOwner => ({ resource: 'x', id: `${store.clientId}/${owner}`, mode: 'read' });
    const SHORT_MS = 3_000;
    await Promise.all(Array.from({ length: 1_000 }, (_, i) => store.acquire(reader(`reader-${i}`), SHORT_MS)));
    const lock = store.keys.lock('x');
    const [cursor, page] = await admin().hscan(lock, '0', 'COUNT', 100);
    const living = {
      ...reader(''),
      id: page.find((field) => field.includes('/reader-') && !field.endsWith('-999'))!,
    };
    expect(await store.renew(living, 60_000)).toBe(true);
    while (await store.verify(reader('reader-999'))) await sleep(20);
    await sleep(100);
    // Simulates a server whose cursor is behind the live member.
    await admin().hset(lock, 'sweep', `${cursor} 9000000000000000`);

    const writer: LockOwner = { resource: 'x', id: `${store.clientId}/writer`, mode: 'write' };
    for (let i = 0; i < 100; i++) expect((await store.acquire(writer, 60_000)).status).toBe('busy');
    expect(await store.verify(living)).toBe(true);
    expect(await store.release(living)).toBe(true);
    expect((await store.acquire(writer, 60_000)).status).toBe('granted');
  });
});
