import { describeGrants } from './contract/grants.contract.js';
import { describeLockStore } from './contract/lock-store.contract.js';
import { useQuorumOnRedis } from './subjects/quorum-on-redis.js';
import { describeReadWrite } from './contract/read-write.contract.js';
import { describeRetention } from './contract/retention.contract.js';
import { describeTickStore } from './other-ports/tick-store.contract.js';
import { describeWatch } from './other-ports/watch.contract.js';

const FEATURES = { semaphores: false, oneQueue: false };

describe('a quorum of three Redis servers', () => {
  const onRedis = useQuorumOnRedis(3);
  describeLockStore(onRedis, FEATURES);
  describe('grants', () => describeGrants(onRedis, FEATURES));
  describe('a read/write lock', () => describeReadWrite(onRedis, FEATURES));
  describe('retain', () => describeRetention(onRedis, FEATURES));
  describe('a watcher', () => describeWatch(onRedis, FEATURES, 3));
  describe('the tick store', () => describeTickStore(onRedis));
});
