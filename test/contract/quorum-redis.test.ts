import { describeGrants } from './grants.contract.js';
import { describeLockStore } from './lock-store.contract.js';
import { useQuorumOnRedis } from './quorum-on-redis.js';
import { describeReadWrite } from './read-write.contract.js';
import { describeTickLedger } from './tick-ledger.contract.js';

describe('a quorum of three Redis servers', () => {
  const onRedis = useQuorumOnRedis(3);
  describeLockStore(onRedis);
  describe('grants', () => describeGrants(onRedis));
  describe('a read/write lock', () => describeReadWrite(onRedis, { semaphores: false, oneQueue: false }));
  describe('the tick ledger', () => describeTickLedger(onRedis));
});
