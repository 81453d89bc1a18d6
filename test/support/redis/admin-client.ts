import { Redis, type RedisOptions } from 'ioredis';
import { eventually } from '../expect/eventually.js';

/** The time for which a fault may delay an admin command. */
const PATIENCE_MS = 30_000;

/** A client of the harness itself: the default user, with all rights. It survives restarts and prints nothing. */
export function connectAdmin(port: number, options: RedisOptions = {}): Redis {
  const client = new Redis({
    port,
    host: '127.0.0.1',
    connectionName: 'chaos-admin',
    maxRetriesPerRequest: null,
    maxLoadingRetryTime: 20,
    retryStrategy: () => 20,
    // Its server may be gone before it: then there is no orderly end to wait for.
    disconnectTimeout: 0,
    ...options,
  });
  client.on('error', () => undefined);
  return client;
}

/** Repeats a command until Redis accepts it: Redis may be busy, loading its data, or down. */
export function insist<T>(command: () => Promise<T>): Promise<T> {
  return eventually(command, PATIENCE_MS);
}
