import { describeOnRedis } from './on-redis.js';

// The ACL line of docs/how-it-works.md is enough for everything a store can do.
describeOnRedis('documented');
