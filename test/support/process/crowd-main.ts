// Many instances in one process, each with leases and a waiting call. Says when all of them are connected.
import { LockClient } from '../../../lib/kernel/lock-client.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';

const [url, name, count, leases] = process.argv.slice(2) as [string, string, string, string];

await Promise.all(
  Array.from({ length: Number(count) }, async (_, index) => {
    const instanceId = `${name}-${index}`;
    const store = new RedisLockStore({ connection: url, keyPrefix: 'lock', instanceId, leaseMs: 600_000 });
    const locks = new LockClient({ store, defaults: { leaseMs: 600_000, waitMs: 600_000, unavailableMs: Infinity } });
    await store.start(60_000);
    for (let lease = 0; lease < Number(leases); lease++) await locks.acquire(`order:${instanceId}:${lease}`);
    locks.acquire(`order:${instanceId}:0`).catch(() => {});
  }),
);
process.send!('ready');
