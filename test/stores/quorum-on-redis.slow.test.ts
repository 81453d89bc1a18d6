import { describeJobStore, describeLockStore } from '../contract/describe-stores.js';
import { onEveryServer } from './subjects/every-server.js';
import { useQuorumOnRedis } from './subjects/quorum-on-redis.js';

describe('a quorum of three Redis servers', () => {
  const onRedis = useQuorumOnRedis(3);
  describeLockStore(onEveryServer, onRedis, {
    semaphores: false,
    oneQueue: false,
    servers: 3,
    parts: ['leases', 'grants', 'readWrite', 'retain', 'watch'],
  });
  describe('the job store', () => describeJobStore(onEveryServer, onRedis, { records: false }));
});
