import { describeOnRedis } from './on-redis.js';

describeOnRedis('default');
