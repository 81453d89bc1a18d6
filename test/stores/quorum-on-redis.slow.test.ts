import { describeGrants } from './contract/grants.contract.js';
import { describeLockStore } from './contract/lock-store.contract.js';
import { useQuorumOnRedis } from './subjects/quorum-on-redis.js';
import { describeReadWrite } from './contract/read-write.contract.js';
import { describeTickStore } from './contract/tick-store.contract.js';

describe('a quorum of three Redis servers', () => {
  const onRedis = useQuorumOnRedis(3);
  describeLockStore(onRedis);
  describe('grants', () => describeGrants(onRedis));
  describe('a read/write lock', () => describeReadWrite(onRedis, { semaphores: false, oneQueue: false }));
  describe('the tick store', () => describeTickStore(onRedis));
});
