import { Redis } from 'ioredis';
import { asDocumentedUser, documentedUserArgs, lockConnection } from '../../support/redis/lock-user.js';
import { startRedis } from '../../support/redis/redis-server.js';
import type { RedisSite } from './on-redis.js';

/** One Redis, for a user who may do everything, or for the one of the documentation. */
export async function oneRedis(user: 'default' | 'documented'): Promise<RedisSite> {
  const redis = await startRedis(user === 'documented' ? { args: documentedUserArgs() } : {});
  const admin = new Redis(redis.url);
  return {
    connection: user === 'documented' ? asDocumentedUser(redis.url) : lockConnection(redis.url),
    admins: [admin],
    async [Symbol.asyncDispose]() {
      admin.disconnect();
      await redis.stop();
    },
  };
}
