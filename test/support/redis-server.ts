import { startRedisServer, type RedisServer, type RedisServerOptions } from '../../scripts/redis-server.mjs';

export { startRedisServer as startRedis, type RedisServer, type RedisServerOptions };

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
    server = await startRedisServer(options);
  });
  afterAll(async () => {
    await server?.stop();
  });
  return () => {
    if (server === undefined) throw new Error('The server of useRedis() runs only inside tests and hooks');
    return server;
  };
}
