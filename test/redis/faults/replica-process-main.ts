// The program of replica-process.test.ts: a process with many pending calls while its primary becomes a replica, and
// back.
import { Redis } from 'ioredis';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';

const [url] = process.argv.slice(2) as [string];
const NOWHERE = 1;

const admin = new Redis(url, { enableReadyCheck: false });
const store = new RedisLockStore({ connection: url, keyPrefix: 'lock', instanceId: 'one', leaseMs: 1_000 });
const locks = new LockClient({ store, defaults: { leaseMs: 1_000, waitMs: 5_000 } });
await store.start(5_000);
for (let round = 0; round < 3; round++) {
  await admin.replicaof('127.0.0.1', NOWHERE);
  const calls = Array.from({ length: 100 }, (_, index) => locks.acquire(`resource ${index}`));
  await new Promise((resolve) => setTimeout(resolve, 100));
  await admin.replicaof('NO', 'ONE');
  const leases = await Promise.all(calls);
  console.log(`${leases.length} acquired`);
  await Promise.all(leases.map((lease) => lease.release()));
}
admin.disconnect();
await locks.shutdown(0);
