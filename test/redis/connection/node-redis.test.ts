import { jest } from '@jest/globals';
import { createClient, createClientPool, createCluster, createSentinel } from '@redis/client';
import { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import { Cluster, Redis } from 'ioredis';
import { InvalidLockOptionsError } from '../../../lib/index.js';
import {
  type RedisConnectionOption,
  startNodesOf,
  statedConnection,
} from '../../../lib/redis/connection/connection-options.js';

const SECRET = 'hunter2';
const URL_OF_ALL = `rediss://app:${SECRET}@redis.test:7000/3`;

/** The options of the user's client that our own connections inherit. */
function carried(connection: RedisConnectionOption) {
  const { model, credentials } = statedConnection(connection);
  const { options } = model as Redis;
  const { host, port, path, db, tls, username, password, keyPrefix, protocol } = options;
  return { host, port, path, db, tls, username, password, keyPrefix, protocol, isRotated: credentials !== undefined };
}

function refusal(connection: unknown): InvalidLockOptionsError {
  try {
    statedConnection(connection as RedisConnectionOption);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect((error as Error).message).not.toContain(SECRET);
    return error as InvalidLockOptionsError;
  }
  throw new Error('Nothing was refused');
}

describe('a client of node-redis says where Redis is', () => {
  it('by its URL', async () => {
    const client = createClient({ url: URL_OF_ALL });
    expect(carried(client)).toMatchObject({ host: 'redis.test', port: 7000, db: 3, tls: {}, isRotated: true });
    const { credentials } = statedConnection(client);
    expect(await credentials!()).toMatchObject({ username: 'app', password: SECRET });
    expect(client.isOpen).toBe(false);
  });

  it('by its options', () => {
    const socket = { host: 'redis.test', port: 7000, tls: true, servername: 'redis.example' } as const;
    const client = createClient({ socket, database: 3, RESP: 2, keyPrefix: 'app:', disableOfflineQueue: true });
    expect(carried(client)).toMatchObject({
      host: 'redis.test',
      port: 7000,
      db: 3,
      tls: { servername: 'redis.example' },
      keyPrefix: 'app:',
      protocol: 2,
      isRotated: false,
    });
    expect(carried(client.withTypeMapping({}))).toMatchObject({ host: 'redis.test' });
  });

  it('by the path of a socket, and by nothing: this machine', () => {
    expect(carried(createClient({ socket: { path: '/tmp/redis.sock', tls: false } }))).toMatchObject({
      path: '/tmp/redis.sock',
    });
    expect(carried(createClient())).toMatchObject({ host: 'localhost', port: 6379, db: 0 });
  });

  it('a cluster by its nodes', () => {
    const map = { '10.0.0.1:7000': { host: '127.0.0.1', port: 7100 } };
    const cluster = createCluster({
      rootNodes: [{ url: 'redis://a.test:7000' }, { socket: { host: 'b.test', port: 7001 } }],
      defaults: { username: 'app', password: SECRET },
      nodeAddressMap: map,
      RESP: 2,
    });
    const { model } = statedConnection(cluster);
    expect(model).toBeInstanceOf(Cluster);
    expect(startNodesOf(model as Cluster)).toEqual(['a.test:7000', 'b.test:7001']);
    expect(model.options).toMatchObject({
      natMap: map,
      redisOptions: { username: 'app', password: SECRET, protocol: 2 },
    });
    expect(cluster.isOpen).toBe(false);
  });
});

describe('the options of node-redis are taken, too', () => {
  it.each<[string, RedisConnectionOption, object]>([
    ['a URL', { url: URL_OF_ALL }, { host: 'redis.test', port: 7000, username: 'app', password: SECRET, db: 3 }],
    ['a URL and a database', { url: 'redis://redis.test', database: 2 }, { host: 'redis.test', db: 2 }],
    ['an address', { socket: { host: 'redis.test' }, password: SECRET }, { host: 'redis.test', password: SECRET }],
    [
      'TLS beside a URL',
      { url: 'rediss://redis.test', socket: { rejectUnauthorized: false } as object },
      { tls: { rejectUnauthorized: false } },
    ],
  ])('%s', (_, connection, options) => {
    expect(carried(connection)).toMatchObject(options);
  });

  it('with a provider of credentials', async () => {
    const connection = {
      socket: { host: 'redis.test' },
      credentialsProvider: {
        type: 'async-credentials-provider',
        credentials: async () => ({ username: 'app', password: SECRET }),
      },
    };
    expect(await statedConnection(connection).credentials!()).toEqual({ username: 'app', password: SECRET });
  });

  it('with a stream of credentials, which is subscribed to once, and ended', async () => {
    let subscriptions = 0;
    let next: ((credentials: object) => void) | undefined;
    let isEnded = false;
    const connection = {
      socket: { host: 'redis.test' },
      credentialsProvider: {
        type: 'streaming-credentials-provider',
        subscribe: async (listener: { onNext(credentials: object): void }) => {
          subscriptions++;
          next = (credentials) => listener.onNext(credentials);
          return [{ password: 'first' }, { dispose: () => (isEnded = true) }];
        },
      },
    };
    const credentials = statedConnection(connection).credentials as unknown as {
      (): Promise<unknown>;
      onChanged(listener: () => void): void;
      end(): void;
    };
    let changes = 0;
    credentials.onChanged(() => changes++);
    expect(await Promise.all([credentials(), credentials()])).toEqual([{ password: 'first' }, { password: 'first' }]);
    next!({ password: 'second' });
    expect(changes).toBe(1);
    expect(await credentials()).toEqual({ password: 'second' });
    credentials.end();
    expect({ subscriptions, isEnded }).toEqual({ subscriptions: 1, isEnded: true });
  });
});

it('subscribes to a stream of credentials again after it failed or ended', async () => {
  const subscribe = jest.fn<(listener: { onError(error: Error): void }) => Promise<unknown>>();
  const connection = {
    socket: { host: 'redis.test' },
    credentialsProvider: { type: 'streaming-credentials-provider', subscribe },
  } as unknown as RedisConnectionOption;
  const credentials = statedConnection(connection).credentials!;
  subscribe.mockRejectedValueOnce(new Error('the provider is down'));
  await expect(credentials()).rejects.toThrow('the provider is down');
  subscribe.mockResolvedValueOnce([{ password: 'first' }, {}]);
  expect(await credentials()).toEqual({ password: 'first' });
  subscribe.mock.lastCall![0].onError(new Error('the stream has ended'));
  subscribe.mockResolvedValueOnce([{ password: 'second' }, {}]);
  expect(await credentials()).toEqual({ password: 'second' });
});

describe('what cannot be carried over is refused by name', () => {
  const shown = 'ioredis does not have: remove it, or pass options of ioredis';
  it.each<[string, unknown, string]>([
    ['another option', { url: URL_OF_ALL, ttl: 5 }, `options of node-redis with "ttl", which ${shown}`],
    ['a token', { url: URL_OF_ALL, token: SECRET }, `with "token", which ${shown}`],
    [
      'an option of the socket',
      { socket: { host: 'a', localAddress: '10.0.0.1' } },
      `with "socket.localAddress", which`,
    ],
    ['TLS beside the socket', { socket: { host: 'a' }, tls: {} }, 'with "tls", which'],
    [
      'a node of a cluster',
      { rootNodes: [{ socket: { host: 'a', lookup: () => {} } }] },
      '"rootNodes[0].socket.lookup"',
    ],
    [
      'a list as the map of addresses',
      { rootNodes: [{ socket: { host: 'a' } }], nodeAddressMap: 5 },
      'whose nodeAddressMap is neither an object nor a function',
    ],
    ['no nodes', { rootNodes: [] }, 'without a node in the array rootNodes'],
    ['no address', { database: 2 }, 'without host, port, path, sentinels or cluster'],
    [
      'a host that is not set',
      { socket: { host: undefined, port: 6379 } },
      'host is "" (is an environment variable not',
    ],
    ['a URL that is not set', { url: '' }, 'an empty string'],
    ['a URL that is no text', { url: new URL(URL_OF_ALL) }, 'whose url is not a string'],
    ['a prefix of bytes', { url: URL_OF_ALL, keyPrefix: Buffer.from('a') }, 'whose keyPrefix is not a string'],
    [
      'another provider',
      { url: URL_OF_ALL, credentialsProvider: { type: 'x' } },
      'neither its async nor its streaming',
    ],
    ['a pool', createClientPool({ url: URL_OF_ALL }), 'a node-redis client that does not expose its options'],
    ['its old client', { send_command: () => {}, options: {} }, 'a node-redis client that does not expose its options'],
    [
      'a sentinel, with the options to write',
      createSentinel({
        name: 'main',
        sentinelRootNodes: [{ host: 'a.test', port: 26_379 }],
        nodeClientOptions: { password: SECRET },
      }),
      "write those of ioredis in its place, { sentinels: [{ host, port }, ...], name: 'mymaster', username, password,",
    ],
    [
      'the options of a sentinel',
      { name: 'main', sentinelRootNodes: [{ host: 'a', port: 1 }], nodeClientOptions: { password: SECRET } },
      'an object with "sentinelRootNodes", as another library takes it: write { sentinels: [...], name }',
    ],
  ])('%s', (_, connection, message) => {
    expect(refusal(connection).message).toContain(message);
  });
});

describe('a client of iovalkey says where Redis is, and is not used', () => {
  it('for one server', () => {
    const client = new Valkey({ host: 'valkey.test', port: 7000, password: SECRET, db: 2, lazyConnect: true });
    const { model } = statedConnection(client as unknown as RedisConnectionOption);
    expect(model).toBeInstanceOf(Redis);
    expect(model.options).toMatchObject({ host: 'valkey.test', port: 7000, password: SECRET, db: 2 });
    expect(client.status).toBe('wait');
  });

  it('for a cluster', () => {
    const client = new ValkeyCluster([{ host: 'a.test', port: 7000 }], {
      redisOptions: { password: SECRET },
      lazyConnect: true,
    });
    const { model } = statedConnection(client as unknown as RedisConnectionOption);
    expect(model).toBeInstanceOf(Cluster);
    expect(startNodesOf(model as Cluster)).toEqual(['a.test:7000']);
    expect((model as Cluster).options.redisOptions).toMatchObject({ password: SECRET });
    expect(client.status).toBe('wait');
    client.disconnect();
  });
});

describe('credentials of ioredis options', () => {
  it.each<[string, unknown, string]>([
    ['no function', { host: 'a', credentials: { password: SECRET } }, 'whose credentials are not a function'],
    ['a password beside them', { host: 'a', password: SECRET, credentials: () => {} }, 'beside them, a username or'],
    [
      'a password of a node beside them',
      { cluster: [`redis://:${SECRET}@a.test:7000`], credentials: () => {} },
      'beside them, a username or password',
    ],
    ['no address', { credentials: () => {} }, 'without host, port, path, sentinels or cluster'],
  ])('%s is refused', (_, connection, message) => {
    expect(refusal(connection).message).toContain(message);
  });
});
