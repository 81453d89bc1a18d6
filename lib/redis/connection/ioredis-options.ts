import type { RedisOptions } from 'ioredis';
import { backoff } from '../../kernel/util/clock.js';
import type { LockStoreError } from '../../kernel/store/store-error.js';

const RECONNECT_PAUSE_MS = { first: 20, longest: 1_000 };

/**
 * Returns the pause before each attempt to connect: never longer than a third of a lease. The connections of a fleet
 * break at the same moment, so wide jitter spreads the attempts.
 */
export function reconnectPauses(leaseMs: number): (times: number) => number {
  const { first, longest } = RECONNECT_PAUSE_MS;
  const range = { first, longest: Math.min(longest, Math.floor(leaseMs / 3)) };
  return (times) => backoff(range, times) * (1 - 0.75 * Math.random());
}

/**
 * Options that make a connection safe for locks: ioredis queues nothing and sends nothing again by itself. By default,
 * it repeats a command whose reply was lost after it reconnects, and would take a lock for a caller that has given up.
 */
export function safeOptions(instanceId: string, leaseMs: number) {
  const reconnectPause = reconnectPauses(leaseMs);
  return {
    lazyConnect: true,
    connectionName: `nestjs-redis-lock:${instanceId}`.replace(/[^\x21-\x7e]/g, '_'),
    keyPrefix: '',
    // Scripts reply with numbers, and every attempt has its own time-out.
    stringNumbers: false,
    commandTimeout: undefined,
    // Locks are on the primary, even if the user's client reads from replicas.
    role: 'master',
    readOnly: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    // The check sends INFO, which an ACL may forbid. A server that is loading its data reports that in reply to each
    // command.
    enableReadyCheck: false,
    connectTimeout: 3_000,
    // A connection without replies for this long is replaced.
    socketTimeout: 5_000,
    // A subscriber, which only listens, finds out by this within 20 s that the other end is gone.
    keepAlive: 10_000,
    disconnectTimeout: 250,
    retryStrategy: reconnectPause,
    sentinelRetryStrategy: reconnectPause,
    // A sentinel that hangs is skipped.
    sentinelCommandTimeout: 2_000,
    // PrimaryWatch does this.
    failoverDetector: false,
    reconnectOnError: null,
  } satisfies RedisOptions;
}

/** After a passing error, such as BUSY while a long script runs. */
const PASSING_MS = 250;
/** The pause if the user may not subscribe. An operator may grant that right. */
const REFUSED_MS = 10_000;

export function subscriptionPause({ failure }: LockStoreError): number {
  return failure === 'refused' ? REFUSED_MS : PASSING_MS;
}
