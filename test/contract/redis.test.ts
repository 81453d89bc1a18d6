import { describeOnRedis } from './on-redis.js';
import { oneRedis } from './one-redis.js';

describeOnRedis(() => oneRedis('default'));
