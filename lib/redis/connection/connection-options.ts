import { Cluster, type ClusterNode, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { describeValue } from '../../kernel/api/validation.js';
import type { CredentialsProvider } from './credentials.js';
import {
  fromNodeRedis,
  isForNodeRedis,
  type NodeRedisClient,
  type NodeRedisCluster,
  type NodeRedisServer,
  optionsOfNodeRedis,
  Untranslatable,
} from './node-redis.js';
import { whyMisread, whyNoName, whyNoServer } from './stated-server.js';

/** Credentials that change while the application runs. */
interface ChangingCredentials {
  /**
   * Returns the credentials `{ username?, password, expiresAt? }`, which replace the options `username` and `password`.
   * Called before each connection opens, and again before `expiresAt`, when open connections authenticate with the new
   * credentials. Sentinels still use `sentinelPassword`.
   *
   * @default none
   */
  credentials?: CredentialsProvider;
}

/** The ioredis options for one Redis, or for Sentinel. */
export interface ServerConnectionOptions extends RedisOptions, ChangingCredentials {}

/** The nodes of a Redis Cluster, and the ioredis options for it. */
export interface ClusterConnectionOptions extends ClusterOptions, ChangingCredentials {
  /**
   * Some nodes of the cluster; the others are discovered. The user, password and TLS settings of the first node apply
   * to all nodes, unless `redisOptions` has others.
   *
   * @allowed URLs, or objects with `host` and `port`
   */
  cluster: readonly ClusterNode[];
}

/**
 * The address of Redis: a URL, ioredis options (including Sentinel options), the nodes of a cluster, node-redis
 * options, or your own client (ioredis, iovalkey or node-redis). The library opens its own connections with your
 * client's options, and never uses, changes or closes the client.
 */
export type RedisConnectionOption =
  | string
  | ServerConnectionOptions
  | ClusterConnectionOptions
  | Redis
  | Cluster
  | NodeRedisClient
  | NodeRedisServer
  | NodeRedisCluster;

export interface StatedConnection {
  /** A client whose options have the address: the user's own, or one that never connects. */
  readonly model: Redis | Cluster;
  readonly credentials?: CredentialsProvider;
}

/** @throws InvalidLockOptionsError when the option names no Redis */
export function statedConnection(connection: RedisConnectionOption): StatedConnection {
  const { stated, credentials } = inOurWords(connection);
  if (credentials !== undefined && typeof credentials !== 'function') {
    throw invalidConnection(
      'options whose credentials are not a function: write credentials: async () => ({ password })',
    );
  }
  const model = clientOf(stated);
  const why = whyNoName(model) ?? whyMisread(placeOf(model));
  if (why) throw invalidConnection(why);
  if (credentials === undefined) return { model };
  if (hasPassword(model)) throw invalidConnection('options with credentials and, beside them, a username or password');
  return { model, credentials };
}

/** The same without credentials, and in the words of ioredis. */
function inOurWords(connection: RedisConnectionOption): {
  readonly stated: RedisConnectionOption;
  readonly credentials?: CredentialsProvider | undefined;
} {
  if (typeof connection !== 'object' || connection === null || Array.isArray(connection)) return { stated: connection };
  if (isIoredisClient(connection)) return { stated: connection };
  try {
    const ofClient = optionsOfNodeRedis(connection);
    if (ofClient ?? isForNodeRedis(connection)) {
      const { options, credentials } = fromNodeRedis(ofClient ?? connection, readUrl);
      // A client without an address connects to this machine. Options without one have perhaps lost it.
      if (ofClient && !options.cluster && !options.path) options.host ??= 'localhost';
      return { stated: options as ServerConnectionOptions, credentials };
    }
  } catch (error) {
    if (error instanceof Untranslatable) throw invalidConnection(error.message);
    throw error;
  }
  const { credentials, ...stated } = connection as ServerConnectionOptions;
  // A class of its own is not spread: it is read below.
  return credentials === undefined ? { stated: connection } : { stated, credentials };
}

function readUrl(url: string): Partial<RedisOptions> {
  if (typeof url !== 'string') throw new Untranslatable('options of node-redis whose url is not a string');
  const { host, port, path, username, password, db, tls } = (clientOf(url) as Redis).options;
  const said = { host, port, path, username, password, db, tls };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => Boolean(value)));
}

function hasPassword(model: Redis | Cluster): boolean {
  const { username, password } = (isCluster(model) ? model.options.redisOptions : model.options) ?? {};
  return Boolean(username) || Boolean(password);
}

function clientOf(connection: RedisConnectionOption): Redis | Cluster {
  if (typeof connection === 'string') {
    if (!/^(rediss?|valkeys?):\/\//.test(connection) && !connection.startsWith('/')) {
      throw invalidConnection(
        connection === '' ? 'an empty string' : 'a string that begins with neither redis:// nor rediss://',
      );
    }
    return fromUrl(connection.replace(/^valkey/, 'redis'));
  }
  if (connection === null || typeof connection !== 'object' || Array.isArray(connection))
    throw invalidConnection(describeValue(connection));
  if (isIoredisClient(connection)) return ofOurs(connection);
  refuseOtherObject(connection);
  if ('cluster' in connection) return fromNodes(connection as ClusterConnectionOptions);
  try {
    return new Redis({ ...(connection as RedisOptions), lazyConnect: true });
  } catch {
    throw invalidConnection('options that ioredis refuses');
  }
}

export function isCluster(model: Redis | Cluster): model is Cluster {
  return (model as Cluster).isCluster;
}

/**
 * Returns the client itself, if this copy of ioredis has made it. From a client of another copy, or of iovalkey, only
 * the options are used: its connections may behave in other ways.
 */
function ofOurs(client: Redis | Cluster): Redis | Cluster {
  const isOurs = client instanceof Redis || client instanceof Cluster;
  if (isOurs) return client;
  const { options, startupNodes = [] } = client as unknown as { options: object; startupNodes?: ClusterNode[] };
  const lazy = { ...options, lazyConnect: true };
  return isCluster(client) ? new Cluster(startupNodes, lazy) : new Redis(lazy);
}

/** Not instanceof: the application may have another copy of ioredis. */
function isIoredisClient(connection: object): connection is Redis | Cluster {
  const { duplicate, status, options } = connection as Partial<Redis>;
  return typeof duplicate === 'function' && typeof status === 'string' && typeof options === 'object';
}

/** ioredis would take any other object for options, and connect to localhost. */
function refuseOtherObject(connection: object): void {
  const isFunction = (method: string): boolean => typeof (connection as Record<string, unknown>)[method] === 'function';
  if (isFunction('then')) throw invalidConnection('a Promise: await it');
  if (isFunction('acquire') || isFunction('lock')) {
    throw invalidConnection(
      `${describeValue(connection)} that acquires locks: pass the client that it was created with`,
    );
  }
  const { redisOptions = {} } = connection as Partial<ClusterConnectionOptions>;
  const why = whyNoServer(connection) ?? whyMisread(connection) ?? whyMisread(redisOptions);
  if (why) throw invalidConnection(why);
}

/** A URL with rediss:// has set its `tls` to true. */
function placeOf(model: Redis | Cluster): Parameters<typeof whyMisread>[0] {
  const { db, tls } = (isCluster(model) ? model.options.redisOptions : model.options) ?? {};
  return { db, ...((tls as unknown) !== true && { tls }) };
}

/**
 * Describes the target of a connection for a message: host and port, the path of a socket, the primary of some
 * sentinels, or nodes of a Cluster. The text has no credentials, and no number of a database.
 */
export function describeConnection(model: Redis | Cluster): string {
  return isCluster(model) ? startNodesOf(model).join(', ') : addressOf(model);
}

function addressOf({ options }: Redis): string {
  const { host = 'localhost', port = 6379, path, name, sentinels } = options;
  if (path) return path;
  if (!sentinels?.length) return `${host}:${port}`;
  const where = sentinels.map((sentinel) => `${sentinel.host ?? 'localhost'}:${sentinel.port ?? 26379}`);
  return `${name} of the sentinels ${where.join(', ')}`;
}

/**
 * Returns the text that all clients of the same keys share: the server, the database and the prefix of ioredis. It may
 * contain a secret address, so it is compared, and shown nowhere.
 */
export function locationOf(model: Redis | Cluster): string {
  const { keyPrefix = '' } = (isCluster(model) ? model.options.redisOptions : model.options) ?? {};
  const db = databaseOf(model);
  const outerPrefix = (isCluster(model) && model.options.keyPrefix) || keyPrefix;
  const where = isCluster(model) ? startNodesOf(model).toSorted() : addressOf(model);
  return JSON.stringify([where, db, outerPrefix]);
}

export function databaseOf(model: Redis | Cluster): number {
  return Number((isCluster(model) ? model.options.redisOptions : model.options)?.db ?? 0);
}

export function startNodesOf(cluster: Cluster): string[] {
  const { startupNodes = [] } = cluster as unknown as { startupNodes?: readonly (string | number | RedisOptions)[] };
  return startupNodes.map(addressOfNode);
}

/** A URL, or an address alone. */
const NODE = /^(?:(?:[a-z]+:)?\/\/)?(?:[^/?#@]*@)?((?:[\w.-]+|\[[\da-f:.%]+\])(?::\d+)?)(?:[/?#][^@]*)?$/i;

/** "host:port" of a node as the options name it: a URL has a password, too. */
function addressOfNode(node: string | number | RedisOptions): string {
  if (typeof node === 'number') return `127.0.0.1:${node}`;
  if (typeof node === 'object') return `${node.host ?? '127.0.0.1'}:${node.port ?? 6379}`;
  // Nothing of a password with a /, ? or # in it: the rest may have no @.
  const [, address] = NODE.exec(node) ?? [];
  return address ?? 'a node';
}

/** The rest of a URL from its host on, with options in its query. */
const HAS_QUERY = /^[^:]+(:\d+)?\/?\d*\?\w+=/;

function fromUrl(url: string): Redis {
  const [, server, rest] = /^rediss?:\/\/([^/?#]*)(.*)$/s.exec(url) ?? [];
  // The beginning of such a password would be taken for the host, and its end for the path.
  if (rest?.includes('@') && !server!.includes('@') && !HAS_QUERY.test(server + rest)) {
    throw invalidConnection('a URL with a /, ? or # before its @: encode the password with encodeURIComponent');
  }
  if (server !== undefined && /(^|@)(:\d*)?$/.test(server)) {
    throw invalidConnection('a URL without a host (is an environment variable not set?)');
  }
  let client: Redis;
  try {
    client = new Redis(url, { lazyConnect: true });
  } catch {
    throw invalidConnection('a URL that cannot be read');
  }
  // For example, a password with a slash in it: its rest would be taken for the path.
  const [, path, query] = /^([^?#]*)\??([^#]*)/.exec(rest ?? '')!;
  const db = new URLSearchParams(query).get('db') ?? path!.replace(/^\/|\/$/g, '');
  if (!/^\d*$/.test(db)) throw invalidConnection('a URL whose path is not a database number');
  if (typeof client.options.tls === 'string') {
    throw invalidConnection(
      'a URL with tls in its query: for TLS, begin it with rediss://, and without TLS, leave it out',
    );
  }
  return client;
}

function fromNodes({ cluster: nodes, ...options }: ClusterConnectionOptions): Cluster {
  if (!Array.isArray(nodes) || nodes.length === 0) throw invalidConnection('a cluster without nodes');
  const [first] = nodes.map((node: ClusterNode) => {
    const { model } = statedConnection(typeof node === 'number' ? { port: node } : node);
    if (isCluster(model)) throw invalidConnection('a cluster of clusters');
    return model.options;
  });
  const { username, password, tls } = first!;
  try {
    return new Cluster([...nodes], {
      ...options,
      redisOptions: {
        ...(username !== undefined && { username }),
        ...(password !== undefined && { password }),
        ...(tls && { tls }),
        ...options.redisOptions,
      },
      lazyConnect: true,
    });
  } catch {
    throw invalidConnection('cluster options that ioredis refuses');
  }
}

/** The message does not contain the value, which may have a password in it. */
function invalidConnection(what: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `connection must be a URL such as redis://localhost:6379, the path of a socket, ioredis options, the nodes of a ` +
      `cluster, or a client of ioredis, iovalkey or node-redis, not ${what}.`,
    'connection',
  );
}
