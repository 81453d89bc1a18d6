import { describeOnMachine } from '../support/redis-server.js';
import { SentinelSet } from '../support/sentinel-set.js';
import { describeOnRedis } from './on-redis.js';

// As the documented user, on whatever primary the sentinel names.
describeOnMachine('behind a sentinel', () =>
  describeOnRedis(async () => {
    const set = await SentinelSet.start();
    return {
      connection: set.connection,
      get admin() {
        return set.admin();
      },
      [Symbol.asyncDispose]: () => set[Symbol.asyncDispose](),
    };
  }, 'locks'),
);
