import { Redis } from 'ioredis';

/** One command on a connection of its own. Gives up soon, and never twice. */
export async function askRedis(url: string, command: string, ...args: string[]): Promise<unknown> {
  const client = new Redis(url, { commandTimeout: 2_000, retryStrategy: null, maxRetriesPerRequest: 0 });
  client.on('error', () => undefined);
  try {
    return await client.call(command, ...args);
  } finally {
    // On a connection that has ended, disconnect() would start a timer of two seconds.
    if (client.status !== 'end') client.disconnect();
  }
}
