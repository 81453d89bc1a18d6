import { describeOnMachine } from '../support/describe-on-machine.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { describeOnRedis } from './on-redis.js';

describeOnMachine('on a cluster of three', () =>
  describeOnRedis(
    async () => {
      const cluster = await RedisCluster.start();
      const admins = cluster.nodes.map(({ admin }) => admin);
      return {
        connection: cluster.connection,
        admins,
        // A node does not know who listens on the others: places of the dead are over when their time is.
        async notice({ clientId }) {
          for (const admin of admins) {
            for (const queue of await admin.keys('*:waiters')) {
              for (const [number, entry] of Object.entries(await admin.hgetall(queue))) {
                if (!entry.startsWith(`${clientId}/`)) continue;
                await admin.hset(queue, number, entry.replace(/ \d+ (\d+)$/, ' 1 $1'));
              }
            }
          }
        },
        [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
      };
    },
    'all',
    { locks: 0, latches: 10 },
  ),
);
