import type { RedisOptions } from 'ioredis';
import { backoff } from '../../core/util/backoff.js';

/** The first and the longest pause before the next try to connect. */
const RECONNECT_PAUSE_MS = { first: 20, longest: 1_000 };

/** How long to wait before a try to connect: never longer than a third of a lease. */
export function reconnectPauses(leaseMs: number): (times: number) => number {
  const { first, longest } = RECONNECT_PAUSE_MS;
  const range = { first, longest: Math.min(longest, Math.floor(leaseMs / 3)) };
  return (times) => backoff(range, times) * (0.75 + Math.random() / 4);
}

/**
 * What makes a connection safe for locks: nothing is queued, kept, or sent again behind the library's back. By default
 * ioredis sends a command whose reply was lost again after it reconnects, and would take a lock for a caller who gave up.
 */
export function safeOptions(instanceId: string, leaseMs: number) {
  const reconnectPause = reconnectPauses(leaseMs);
  return {
    lazyConnect: true,
    connectionName: `nestjs-redis-lock:${instanceId}`.replace(/[^\x21-\x7e]/g, '_'),
    keyPrefix: '',
    // Scripts reply with numbers, and every attempt has a time-out of its own.
    stringNumbers: false,
    commandTimeout: undefined,
    // Locks live on the primary, whatever the user's client reads from.
    role: 'master',
    readOnly: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    // The check sends INFO, which an ACL may forbid; a server that still loads its data says so to each command.
    enableReadyCheck: false,
    connectTimeout: 3_000,
    // A connection on which replies stay away for this long is given up and made anew.
    socketTimeout: 5_000,
    // A subscriber that only listens finds out in this way, within 20 s, that the other end is gone.
    keepAlive: 10_000,
    disconnectTimeout: 250,
    retryStrategy: reconnectPause,
    sentinelRetryStrategy: reconnectPause,
    // A sentinel that stands still is passed over.
    sentinelCommandTimeout: 2_000,
    // See PrimaryWatch, which does this.
    failoverDetector: false,
    reconnectOnError: null,
  } satisfies RedisOptions;
}
