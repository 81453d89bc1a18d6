import { type Cluster, Redis, type RedisOptions } from 'ioredis';
import { InvalidLockOptionsError } from '../core/errors.js';
import { LockStoreError } from '../core/lock-store.js';
import { describeValue } from '../core/validation.js';
import { mendBrokenHandshake } from './broken-handshake.js';
import { isNotWritten, toStoreError } from './failures.js';
import { explainSentinel, PrimaryWatch } from './primary-watch.js';

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
  const reconnectPause = (times: number): number =>
    Math.min(longest, 20 * 2 ** Math.min(times - 1, 8)) * (0.75 + Math.random() / 4);
  return {
    lazyConnect: true,
    connectionName,
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
  };
}

/** The two connections of one instance: one for commands, one that listens. They belong to the library. */
export class RedisConnection {
  readonly commands: Redis;
  readonly subscriber: Redis;
  /** The `keyPrefix` of the user's own client or options, which our keys and channels begin with too. */
  readonly outerKeyPrefix: string;
  #lastError: LockStoreError | undefined;
  /** Redis refused a part of the handshake: the password, or the database. ioredis may be 'ready' all the same. */
  #isRefused = false;
  readonly #watch: PrimaryWatch;

  /** @throws InvalidLockOptionsError when the option is none of the things that name a Redis */
  constructor(connection: RedisConnectionOption, instanceId: string, leaseMs: number) {
    const options = safeOptions(`nestjs-redis-lock:${instanceId}`.replace(/[^\x21-\x7e]/g, '_'), leaseMs);
    const model = modelClient(connection);
    let isLeaving = false;
    const leavingReplicas: RedisOptions = {
      ...options,
      // Reconnect to find the primary, but do not send the command again; and once, not for each reply of those under way: ioredis
      // would end the same socket again and again, until Node warns of its listeners.
      reconnectOnError: ({ message }) => {
        if (isLeaving || !message.includes('READONLY')) return false;
        isLeaving = true;
        // Who listens on a replica counts as dead where a lock is passed on.
        reconnect(this.subscriber);
        return 1;
      },
    };
    this.commands = model.duplicate(leavingReplicas);
    this.subscriber = model.duplicate(options);
    for (const client of [this.commands, this.subscriber]) mendBrokenHandshake(client);
    this.outerKeyPrefix = model.options.keyPrefix?.toString() ?? '';
    let wasHeard = false;
    this.commands.on('connect', () => {
      this.#isRefused = false;
      isLeaving = false;
      // 'ready' says less: for ioredis 5 a connection is so before it has heard anything.
      if (!wasHeard) this.commands.stream.once('data', () => (wasHeard = true));
    });
    let sentinelTrouble: string | undefined;
    this.commands.on('sentinelError', ({ message }: Error) => {
      sentinelTrouble = explainSentinel(message, this.commands.options.name);
    });
    this.commands.on('error', (error: Error) => {
      if (error.message.startsWith('All sentinels are unreachable')) {
        // It says so each time it begins with the first one again, also where a sentinel has named a server that is down.
        if (sentinelTrouble !== undefined) this.#lastError = new LockStoreError('unknown', sentinelTrouble);
        sentinelTrouble = undefined;
        return;
      }
      sentinelTrouble = undefined;
      const sorted = toStoreError(error);
      const isSilent = !wasHeard && /ECONNRESET|connection broke/.test(sorted.message);
      this.#lastError = isSilent ? closedAtOnce(this.commands.options) : sorted;
      this.#isRefused ||= error.name === 'ReplyError';
    });
    this.commands.on('close', () => {
      if (!wasHeard) this.#lastError ??= closedAtOnce(this.commands.options);
    });
    this.commands.on('ready', () => {
      if (this.commands.status === 'ready' && !this.#isRefused) this.#lastError = undefined;
    });
    // It has the same troubles as the other one, which tells about them.
    this.subscriber.on('error', () => {});
    this.#watch = new PrimaryWatch(this.commands.options, () => {
      for (const client of [this.commands, this.subscriber]) reconnect(client);
    });
  }

  /** Begins to connect, and goes on trying by itself until it is closed. */
  connect(): void {
    // What goes wrong is kept in #lastError, and told to whoever sends a command meanwhile.
    for (const client of [this.commands, this.subscriber]) client.connect().catch(() => {});
    this.#watch.start();
  }

  /** The client for commands. @throws LockStoreError while there is no connection: the command was not sent */
  ready(): Redis {
    if (this.commands.status === 'ready' && !this.#isRefused) return this.commands;
    const isFatal = this.#lastError?.failure === 'refused';
    throw new LockStoreError(isFatal ? 'refused' : 'notExecuted', this.describeTrouble());
  }

  /** Sorts what a command was rejected with, in words that say why. */
  explain(error: unknown): LockStoreError {
    if (isNotWritten(error)) return new LockStoreError('notExecuted', this.describeTrouble());
    const sorted = toStoreError(error);
    // ioredis breaks this connection to look for the primary elsewhere; until it is back, this is the reason.
    if (sorted.message.startsWith('READONLY')) this.#lastError = sorted;
    return sorted;
  }

  describeTrouble(): string {
    const { host = 'localhost', port = 6379, path, name } = this.commands.options;
    const where = path ?? (name ? `the primary ${JSON.stringify(name)} of the sentinels` : `${host}:${port}`);
    return `not connected to Redis at ${where}${this.#lastError ? ` (${this.#lastError.message})` : ''}`;
  }

  close(): void {
    for (const client of [this.commands, this.subscriber]) client.disconnect();
    this.#watch.close();
  }
}

/** The server ends each connection before it has said a word: it expects another kind of beginning. */
function closedAtOnce({ tls }: RedisOptions): LockStoreError {
  const advice = tls
    ? 'Where it wants to know the client, give tls: { cert, key } in the connection option'
    : 'Where the port speaks TLS, use rediss:// or tls in the connection option';
  return new LockStoreError('unknown', `the server closes the connection at once. ${advice}`);
}

/** Makes a connection anew. One that is just being made is given up when it is: before that ioredis would end it for good. */
function reconnect(client: Redis): void {
  if (client.status === 'ready' || client.status === 'connect') return client.disconnect(true);
  if (client.status !== 'connecting') return;
  const giveUp = (): void => client.disconnect(true);
  client.once('connect', giveUp).once('close', () => client.off('connect', giveUp));
}

/** A client whose options say where Redis is: the user's own, or one that never connects. */
function modelClient(connection: RedisConnectionOption): Redis {
  if (typeof connection === 'string') {
    if (!/^(rediss?|valkeys?):\/\//.test(connection) && !connection.startsWith('/')) {
      throw invalidConnection('a string that is no redis:// or rediss:// URL');
    }
    return fromUrl(connection.replace(/^valkey/, 'redis'));
  }
  if (connection === null || typeof connection !== 'object' || Array.isArray(connection))
    throw invalidConnection(describeValue(connection));
  // By what it can do, not by its class: the application may have another copy of ioredis.
  if ((connection as unknown as Cluster).isCluster) throw invalidConnection('a Cluster, which is not supported yet');
  if (typeof (connection as Redis).duplicate === 'function') return connection as Redis;
  try {
    return new Redis({ ...(connection as RedisOptions), lazyConnect: true });
  } catch {
    throw invalidConnection('options that ioredis refuses');
  }
}

function fromUrl(url: string): Redis {
  let client: Redis;
  try {
    client = new Redis(url, { lazyConnect: true });
  } catch {
    throw invalidConnection('a URL that cannot be read');
  }
  // Such as the rest of a password with a slash in it, before which the host would be looked for.
  if (Number.isNaN(client.options.db)) throw invalidConnection('a URL whose path is no number of a database');
  return client;
}

/** Without the value: it may hold a password. */
function invalidConnection(what: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `connection must be a URL such as redis://localhost:6379, ioredis options, or an ioredis client, not ${what}.`,
    'connection',
  );
}
