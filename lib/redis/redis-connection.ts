import { type Cluster, Redis, type RedisOptions } from 'ioredis';
import { InvalidLockOptionsError } from '../core/errors.js';
import { LockStoreError } from '../core/lock-store.js';
import { describeValue } from '../core/validation.js';

/** Where Redis is: a URL, ioredis options, or a client of yours, which is duplicated and never changed or closed. */
export type RedisConnectionOption = string | RedisOptions | Redis;

/** The longest pause before the next try to connect. */
const LONGEST_RECONNECT_MS = 1_000;

/**
 * What makes a connection safe for locks: nothing is queued, kept, or sent again behind the library's back. By default
 * ioredis sends a command whose reply was lost again after it reconnects, and would take a lock for a caller who gave up.
 */
function safeOptions(connectionName: string, leaseMs: number): RedisOptions {
  const longest = Math.min(LONGEST_RECONNECT_MS, Math.floor(leaseMs / 3));
  return {
    lazyConnect: true,
    connectionName,
    keyPrefix: '',
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
    retryStrategy: (times) => Math.min(longest, 20 * 2 ** Math.min(times - 1, 8)) * (0.75 + Math.random() / 4),
    // Reconnect, but do not send the command again.
    reconnectOnError: (error) => (error.message.includes('READONLY') ? 1 : false),
  };
}

/** The two connections of one instance: one for commands, one that listens. They belong to the library. */
export class RedisConnection {
  readonly commands: Redis;
  readonly subscriber: Redis;
  /** The `keyPrefix` of the user's own client or options, which our keys and channels begin with too. */
  readonly outerKeyPrefix: string;
  #lastError: string | undefined;

  /** @throws InvalidLockOptionsError when the option is none of the things that name a Redis */
  constructor(connection: RedisConnectionOption, instanceId: string, leaseMs: number) {
    const options = safeOptions(`nestjs-redis-lock:${instanceId}`.replace(/[^\x21-\x7e]/g, '_'), leaseMs);
    this.commands = createClient(connection, options);
    this.subscriber = createClient(connection, options);
    this.outerKeyPrefix = readKeyPrefix(connection);
    for (const client of [this.commands, this.subscriber]) {
      client.on('error', (error: Error) => (this.#lastError = error.message));
      client.on('ready', () => (this.#lastError = undefined));
    }
  }

  /** Begins to connect, and goes on trying by itself until it is closed. */
  connect(): void {
    // What goes wrong is kept in #lastError, and told to whoever sends a command meanwhile.
    for (const client of [this.commands, this.subscriber]) client.connect().catch(() => {});
  }

  /** The client for commands. @throws LockStoreError while there is no connection: the command was not sent */
  ready(): Redis {
    if (this.commands.status === 'ready') return this.commands;
    throw new LockStoreError('notExecuted', this.describeTrouble());
  }

  describeTrouble(): string {
    const { host = 'localhost', port = 6379, path, name } = this.commands.options;
    const where = path ?? (name ? `the primary ${JSON.stringify(name)} of the sentinels` : `${host}:${port}`);
    return `not connected to Redis at ${where}${this.#lastError ? ` (${this.#lastError})` : ''}`;
  }

  close(): void {
    for (const client of [this.commands, this.subscriber]) client.disconnect();
  }
}

function createClient(connection: RedisConnectionOption, options: RedisOptions): Redis {
  if (typeof connection === 'string') {
    if (!/^(rediss?|valkeys?):\/\//.test(connection) && !connection.startsWith('/')) {
      throw invalidConnection('a string that is no redis:// or rediss:// URL');
    }
    return new Redis(connection, options);
  }
  if (connection === null || typeof connection !== 'object') throw invalidConnection(describeValue(connection));
  // By what it can do, not by its class: the application may have another copy of ioredis.
  if ((connection as unknown as Cluster).isCluster) throw invalidConnection('a Cluster, which is not supported yet');
  if (typeof (connection as Redis).duplicate === 'function') return (connection as Redis).duplicate(options);
  return new Redis({ ...(connection as RedisOptions), ...options });
}

function readKeyPrefix(connection: RedisConnectionOption): string {
  if (typeof connection === 'string') return '';
  const options = 'options' in connection ? connection.options : (connection as RedisOptions);
  return options.keyPrefix?.toString() ?? '';
}

/** Without the value: it may hold a password. */
function invalidConnection(what: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `connection must be a URL such as redis://localhost:6379, ioredis options, or an ioredis client, not ${what}.`,
    'connection',
  );
}
