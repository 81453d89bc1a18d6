import { describeOnRedis } from './subjects/on-redis.js';
import { oneRedis } from './subjects/one-redis.js';

describeOnRedis(() => oneRedis('default'));
