import { describeOnMachine } from '../support/redis/describe-on-machine.js';
import { RedisCluster } from '../support/redis/redis-cluster.js';
import { onEveryServer } from './subjects/every-server.js';
import { describeOnRedis } from './subjects/on-redis.js';

/** In this century, like every time in a queue. */
const LONG_AGO = String(Date.UTC(2010, 0));

describeOnMachine('on a cluster of three', () =>
  describeOnRedis(
    async () => {
      const cluster = await RedisCluster.start();
      const admins = cluster.nodes.map(({ admin }) => admin);
      return {
        connection: cluster.connection,
        admins,
        // A node does not know the listeners of the others: places of dead clients last for their full time.
        async notice({ clientId }) {
          for (const admin of admins) {
            for (const queue of await admin.keys('*:waiters')) {
              for (const owner of await admin.zrange(queue, 0, '-1')) {
                if (!owner.startsWith(`${clientId}/`)) continue;
                const number = (await admin.zscore(queue, owner))!;
                const [place] = (await admin.zrangebyscore(queue, number, number)) as [string];
                await admin.zrem(queue, place);
                const expired = place.replace(/ \d+ (\d+ \d+)$/, ` ${LONG_AGO} $1`);
                await admin.zadd(queue, number, expired, LONG_AGO, `#${number}`);
              }
            }
          }
        },
        [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
      };
    },
    { runner: onEveryServer, histories: 0 },
  ),
);
