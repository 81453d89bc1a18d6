import { eventually } from '../support/expect/eventually.js';
import { startRedis } from '../support/redis/redis-server.js';
import { describeDowngrade } from './downgrade.contract.js';
import { describeLockStore } from './lock-store.contract.js';
import { useSubjectsOn } from './on-redis.js';
import { oneRedis } from './one-redis.js';
import { describeReadWrite } from './read-write.contract.js';
import { describeTickLedger } from './tick-ledger.contract.js';
import { describeTransfer } from './transfer.contract.js';
import { describeWriter } from './writer.contract.js';

/**
 * The parts of the contract whose commands go to replicas. Those about messages are left out: who is granted by one has to ask, see
 * test/integration/topologies/durability.test.ts. The scripts are the same as without a replica.
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
  describeLockStore(onRedis);
  describe('a read/write lock', () => describeReadWrite(onRedis));
  describe('a writer', () => describeWriter(onRedis));
  describe('downgrade', () => describeDowngrade(onRedis));
  describe('transfer', () => describeTransfer(onRedis));
  describe('the tick ledger', () => describeTickLedger(onRedis));
});
