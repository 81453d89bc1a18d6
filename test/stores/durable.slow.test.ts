import { eventually } from '../support/expect/eventually.js';
import { startRedis } from '../support/redis/redis-server.js';
import { describeJobStore, describeLockStore, describeResultStore } from '../contract/describe-stores.js';
import { onEveryServer } from './subjects/every-server.js';
import { useSubjectsOn } from './subjects/on-redis.js';
import { oneRedis } from './subjects/one-redis.js';

/**
 * The parts of the contract whose commands go to replicas. Those about messages are left out: who is granted by one has to ask, see
 * test/redis/topologies/durability.test.ts. The scripts are the same as without a replica.
 */
describe('the Redis lock store, when a replica has to have each grant', () => {
  const onRedis = useSubjectsOn(async () => {
    const primary = await oneRedis('default');
    const admin = primary.admins[0]!;
    await admin.config('SET', 'repl-diskless-sync-delay', 0);
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', `${admin.options.port}`] });
    await eventually(async () => expect(await admin.wait(1, 1_000)).toBe(1));
    return {
      ...primary,
      durability: { replicas: 1, timeoutMs: 5_000 },
      async [Symbol.asyncDispose]() {
        await primary[Symbol.asyncDispose]();
        await replica.stop();
      },
    };
  });
  describeLockStore(onEveryServer, onRedis, {
    parts: ['leases', 'readWrite', 'writer', 'downgrade'],
  });
  describe('the job store', () => describeJobStore(onEveryServer, onRedis));
  describe('the store of results', () => describeResultStore(onEveryServer, onRedis));
});
