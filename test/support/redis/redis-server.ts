import { startRedisServer, type RedisServer, type RedisServerOptions } from '../../../scripts/redis-server.mjs';
import { documentedUserArgs, LOCKS_AS_USER } from './lock-user.js';

export type { RedisServer, RedisServerOptions };

/** One private Redis, which the caller stops. */
export function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  if (!LOCKS_AS_USER) return startRedisServer(options);
  return startRedisServer({ ...options, args: [...(options.args ?? []), ...documentedUserArgs()] });
}

/**
 * One private Redis for all tests of the enclosing file or `describe`. Gives a function, because the server exists only
 * inside tests and hooks:
 *
 *     const redis = useRedis();
 *     it('...', async () => { const client = new Redis(redis().url); ... });
 */
export function useRedis(options?: RedisServerOptions): () => RedisServer {
  let server: RedisServer | undefined;
  beforeAll(async () => {
    server = await startRedis(options);
  });
  afterAll(async () => {
    await server?.stop();
  });
  return () => {
    if (server === undefined) throw new Error('The server of useRedis() runs only inside tests and hooks');
    return server;
  };
}
