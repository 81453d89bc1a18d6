import { describeOnRedis } from './subjects/on-redis.js';
import { oneRedis } from './subjects/one-redis.js';

// The ACL line of docs/operations/acl.md is enough for everything a store can do.
describeOnRedis(() => oneRedis('documented'));
