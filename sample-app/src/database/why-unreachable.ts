import { Redis } from 'ioredis';

const ANSWER_MS = 3_000;

/**
 * Returns the reason why nothing answers at this address, or undefined. Names the host only: a URL may hold a password.
 */
export async function whyUnreachable(url: string): Promise<string | undefined> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: ANSWER_MS });
  let reason: Error | undefined;
  redis.on('error', (error) => (reason = error));
  try {
    await redis.connect();
    await redis.ping();
    return undefined;
  } catch (error) {
    const { host, port } = redis.options;
    return `Redis at ${host}:${port} cannot be used (${(reason ?? (error as Error)).message}).`;
  } finally {
    redis.disconnect();
  }
}
