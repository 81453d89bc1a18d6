import type { RedisOptions } from 'ioredis';
import { defined } from '../../kernel/util/objects.js';
import { quote } from '../../kernel/util/quoted.js';
import type { CredentialsProvider, PushingProvider, RedisCredentials } from './credentials.js';
import { SAY_WHERE as SAY_WHERE_IN_IOREDIS } from './stated-server.js';

/**
 * The address of a server in the options of node-redis. Other socket options of node-redis apply only to its own
 * connections.
 */
export interface NodeRedisSocket {
  host?: string | undefined;
  port?: number | undefined;
  path?: string | undefined;
  family?: number | undefined;
  /** `true` uses TLS. The TLS options beside it are passed to `tls.connect`. */
  tls?: boolean | undefined;
}

/** A credentials provider of node-redis, async or streaming. */
interface NodeRedisCredentials {
  readonly type: string;
}

/** The node-redis options that this library uses: the address of Redis, and the credentials. */
export interface NodeRedisServer {
  url?: string | undefined;
  socket?: NodeRedisSocket | undefined;
  username?: string | undefined;
  password?: string | undefined;
  database?: number | undefined;
  credentialsProvider?: NodeRedisCredentials | undefined;
  keyPrefix?: unknown;
  RESP?: 2 | 3 | undefined;
  disableClientInfo?: boolean | undefined;
}

/** The addresses of nodes that the application knows by other addresses. */
type AddressMap = NonNullable<RedisOptions['natMap']>;

/** The options of a node-redis cluster. */
export interface NodeRedisCluster {
  rootNodes: readonly NodeRedisServer[];
  defaults?: NodeRedisServer | undefined;
  RESP?: 2 | 3 | undefined;
  keyPrefix?: unknown;
  nodeAddressMap?: unknown;
}

/** A client or a cluster of node-redis. */
export interface NodeRedisClient {
  sendCommand(...args: never[]): Promise<unknown>;
  duplicate(...args: never[]): unknown;
  readonly isOpen: boolean;
}

/** Its options without our own meaning: they are for the connections, the commands and the cache of node-redis. */
const OTHER_OPTIONS = new Set(
  (
    'name readonly pingInterval commandOptions commandsQueueMaxLength disableOfflineQueue clientSideCache clientInfoTag ' +
    'emitInvalidate maintNotifications maintEndpointType maintRelaxedCommandTimeout maintRelaxedSocketTimeout modules ' +
    'functions scripts himportRegistry legacyMode isolationPoolOptions minimizeConnections useReplicas ' +
    'maxCommandRedirections topologyRefreshOnReconnectionAttemptStrategy'
  ).split(' '),
);
const OTHER_SOCKET_OPTIONS = new Set(
  'connectTimeout reconnectStrategy socketTimeout noDelay keepAlive keepAliveInitialDelay'.split(' '),
);
const SAY_WHERE = ['url', 'socket', 'rootNodes', 'credentialsProvider', 'database'];

interface Translated {
  readonly options: RedisOptions & { cluster?: { host?: string; port?: number }[]; redisOptions?: RedisOptions };
  readonly credentials?: CredentialsProvider | undefined;
}

/** Why options of node-redis cannot be translated. The message has no value in it. */
export class Untranslatable extends Error {}

/** Reads a URL like ioredis, and returns only its contents. */
type ReadUrl = (url: string) => Pick<RedisOptions, 'host' | 'port' | 'path' | 'username' | 'password' | 'db' | 'tls'>;

/** Returns true if these are options of node-redis, and not of ioredis. */
export function isForNodeRedis(options: object): boolean {
  const has = (key: string): boolean => (options as Record<string, unknown>)[key] !== undefined;
  // Beside the options of ioredis, one of node-redis is a mistake, which is explained elsewhere.
  return SAY_WHERE.some(has) && !SAY_WHERE_IN_IOREDIS.some(has);
}

/**
 * The options of a client or a cluster of node-redis. They are read, and it is left as it is.
 *
 * @returns `undefined` if it is none
 * @throws Untranslatable if it does not show its options
 */
export function optionsOfNodeRedis(client: object): object | undefined {
  // The clients of node-redis 4 and later, and of 3. A cluster has `_options`.
  const shown = client as Record<string, unknown>;
  const { sendCommand, send_command: sendOld, isOpen, getMasterNode, options = shown['_options'] } = shown;
  if (typeof sendCommand !== 'function' && typeof sendOld !== 'function') return undefined;
  if (typeof getMasterNode === 'function') {
    throw new Untranslatable(
      'a sentinel of node-redis, which does not show its options: write those of ioredis in its place, ' +
        "{ sentinels: [{ host, port }, ...], name: 'mymaster', username, password, sentinelPassword }",
    );
  }
  if (typeof isOpen === 'boolean' && typeof options === 'object' && options !== null) return options;
  throw new Untranslatable('a node-redis client that does not expose its options: write the options in its place');
}

/** @throws Untranslatable with what cannot be carried over */
export function fromNodeRedis(given: object, readUrl: ReadUrl): Translated {
  if ('rootNodes' in given) return fromCluster(given as NodeRedisCluster, readUrl);
  return fromClient(given, '', readUrl);
}

function fromClient(given: NodeRedisServer, at: string, readUrl: ReadUrl): Translated {
  const { url, socket, username, password, database, credentialsProvider, keyPrefix, RESP, ...rest } = given;
  const { disableClientInfo, ...others } = rest;
  refuseOthers(others, OTHER_OPTIONS, at);
  // The URL comes first, as in node-redis.
  const { tls, ...parsed } = url === undefined ? {} : readUrl(url);
  const options: RedisOptions = {
    ...fromSocket(tls ? { ...socket, tls: true } : socket, `${at}socket.`),
    ...defined({ username, password, db: database, protocol: RESP, disableClientInfo }),
    ...defined({ keyPrefix: textPrefix(keyPrefix) }),
    ...parsed,
  };
  if (!credentialsProvider) return { options };
  // node-redis ignores the password beside it, and makes a provider of a password.
  delete options.username;
  delete options.password;
  return { options, credentials: fromProvider(credentialsProvider, `${at}credentialsProvider`) };
}

function fromSocket(socket: NodeRedisSocket | undefined, at: string): RedisOptions {
  const { host, port, path, family, tls, ...rest } = socket ?? {};
  const others = Object.fromEntries(Object.entries(rest).filter(([key]) => !OTHER_SOCKET_OPTIONS.has(key)));
  if (typeof (tls ?? false) !== 'boolean') {
    throw new Untranslatable(`options of node-redis whose ${at}tls is neither true nor false`);
  }
  if (!tls) refuseOthers(others, OTHER_SOCKET_OPTIONS, at);
  // A host that is there and not set is refused later: perhaps an environment variable is missing.
  const isUnset = socket && Object.hasOwn(socket, 'host') && host === undefined && path === undefined;
  return { ...(isUnset && { host: '' }), ...defined({ host, port, path, family, tls: tls ? others : undefined }) };
}

function fromCluster(given: NodeRedisCluster, readUrl: ReadUrl): Translated {
  const { rootNodes, defaults, RESP, keyPrefix, nodeAddressMap, ...others } = given;
  refuseOthers(others, OTHER_OPTIONS, '');
  const nodes = listOf(rootNodes, 'rootNodes').map((node, index) => fromClient(node, `rootNodes[${index}].`, readUrl));
  const shared = defaults ? fromClient(defaults, 'defaults.', readUrl) : nodes[0]!;
  const cluster = nodes.map(({ options }) => defined({ host: options.host, port: options.port }));
  const { host: _, port: __, path: ___, ...redisOptions } = shared.options;
  return {
    options: {
      cluster,
      redisOptions: { ...redisOptions, ...defined({ protocol: RESP }) },
      ...defined({ natMap: addressMap(nodeAddressMap), keyPrefix: textPrefix(keyPrefix) }),
    },
    credentials: shared.credentials ?? nodes[0]!.credentials,
  };
}

function listOf<T>(list: readonly T[], name: string): readonly T[] {
  if (Array.isArray(list) && list.length > 0) return list;
  throw new Untranslatable(`options of node-redis without a node in the array ${name}`);
}

function refuseOthers(others: object, known: ReadonlySet<string>, at: string): void {
  const other = Object.entries(others).find(([key, value]) => value !== undefined && !known.has(key))?.[0];
  if (other === undefined) return;
  throw new Untranslatable(
    `options of node-redis with ${quote(at + other)}, which ioredis does not have: remove it, or pass options of ioredis`,
  );
}

function textPrefix(keyPrefix: unknown): string | undefined {
  if (keyPrefix === undefined || typeof keyPrefix === 'string') return keyPrefix;
  throw new Untranslatable('options of node-redis whose keyPrefix is not a string');
}

function addressMap(map: unknown): AddressMap | undefined {
  if (map === undefined || typeof map === 'function' || (typeof map === 'object' && map !== null)) {
    return map as AddressMap | undefined;
  }
  throw new Untranslatable('options of node-redis whose nodeAddressMap is neither an object nor a function');
}

type Shown = Partial<Pick<RedisCredentials, 'username' | 'password'>>;

interface StreamingProvider {
  subscribe(listener: {
    onNext(next: Shown): void;
    onError(error: Error): void;
  }): Promise<[Shown, { dispose?(): void }]>;
}

function fromProvider(provider: NodeRedisCredentials, at: string): CredentialsProvider {
  const { type } = provider;
  if (type === 'async-credentials-provider') {
    const { credentials } = provider as unknown as { credentials(): Promise<Shown> };
    return async () => (await credentials.call(provider)) as RedisCredentials;
  }
  if (type === 'streaming-credentials-provider') return fromStream(provider as unknown as StreamingProvider);
  throw new Untranslatable(`options of node-redis whose ${at} is neither its async nor its streaming kind`);
}

/** Subscribes once. New connections use the last credentials of the stream. */
function fromStream(provider: StreamingProvider): CredentialsProvider {
  let last: Promise<Shown> | undefined;
  let changed = (): void => {};
  let subscription: { dispose?(): void } | undefined;
  const current = (): Promise<RedisCredentials> => {
    last ??= provider
      .subscribe({
        onNext(next) {
          last = Promise.resolve(next);
          changed();
        },
        // The provider has ended the stream. The next connection begins another one.
        onError: () => (last = undefined),
      })
      .then(([first, disposable]) => {
        subscription = disposable;
        return first;
      });
    const asked = last;
    asked.catch(() => {
      if (last === asked) last = undefined;
    });
    return asked as Promise<RedisCredentials>;
  };
  const onChanged = (listener: () => void): void => {
    changed = listener;
  };
  return Object.assign(current, { onChanged, end: () => subscription?.dispose?.() }) satisfies PushingProvider;
}
