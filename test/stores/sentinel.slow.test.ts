import { describeOnMachine } from '../support/redis/describe-on-machine.js';
import { SentinelSet } from '../support/redis/sentinel-set.js';
import { onEveryServer } from './subjects/every-server.js';
import { describeOnRedis } from './subjects/on-redis.js';

// As the documented user, on whatever primary the sentinel names.
describeOnMachine('behind a sentinel', () =>
  describeOnRedis(
    async () => {
      const set = await SentinelSet.start();
      return {
        connection: set.connection,
        get admins() {
          return [set.admin()];
        },
        [Symbol.asyncDispose]: () => set[Symbol.asyncDispose](),
      };
    },
    { runner: onEveryServer, histories: 0 },
  ),
);
