import { inspect } from 'node:util';
import { Test } from '@nestjs/testing';
import { Cluster, Redis } from 'ioredis';
import { InvalidLockOptionsError, RedisLockModule } from 'nestjs-redis-lock';
import { statedConnection } from '../../../lib/redis/connection/connection-options.js';
import { rejection } from '../../support/expect/eventually.js';

const secret = 'hunter2';

const url = `redis://:${secret}@redis.internal:6379`;

describe('a connection that would lead to localhost in silence fails at boot, and the error says what to write', () => {
  const [there, unset] = ['redis.internal', 'is an environment variable not set?'];
  class Config {
    get host(): string {
      return there;
    }
  }
  const theUrl = 'as another library takes it: write the URL itself, in place of the object.';
  const inside = 'as another library takes it: write what is in it, in place of the object, such as { host, port }.';
  const nodes = 'as another library takes it: write { cluster: [...] } for the nodes of a Cluster, or { sentinels: ';
  const nowhere = 'without host, port, path, sentinels or cluster';
  const shapes: [string, unknown, string][] = [
    ['a URL beside a port', { url, port: 6379 }, `not an object with "url", ${theUrl}`],
    [
      'a URL beside an option of others',
      { url, ttl: 5 },
      'not options of node-redis with "ttl", which cannot be carried',
    ],
    ['a URI', { uri: url }, `not an object with "uri", ${theUrl}`],
    ['an address in two ways', { socket: { host: there }, host: there }, `not an object with "socket", ${inside}`],
    [
      'a socket without its host',
      { socket: { host: undefined, port: 6379 } },
      `not options whose host is "" (${unset}).`,
    ],
    ['a module of ioredis, with nodes', { nodes: [{ host: there }] }, `not an object with "nodes", ${nodes}`],
    ['Bull', { redis: { host: there, password: secret } }, `not an object with "redis", ${inside}`],
    ['BullMQ', { connection: { host: there, password: secret } }, `not an object with "connection", ${inside}`],
    ['TypeORM', { type: 'redis', options: { host: there } }, `not an object with "options", ${inside}`],
    ['a module with a config', { config: { host: there } }, `not an object with "config", ${inside}`],
    ['a hostname beside a port', { hostname: there, port: 6379 }, 'not an object with "hostname", as another library'],
    ['a database of node-redis', { host: there, database: 2 }, 'not an object with "database", as another library'],
    ['a URL object', new URL(url), 'not a URL object: write its href.'],
    ['nothing', {}, `not an object (Object) ${nowhere}: for a Redis on this machine, write { host: 'localhost' }.`],
    ['an object of the application', new Config(), `not an object (Config) ${nowhere}: `],
    ['a Map', new Map([['host', there]]), `not an object (Map) ${nowhere}: `],
    ['only a database', { db: 2, tls: {} }, `not an object (Object) ${nowhere}, but with "db", "tls": `],
    ['options below a key of ours', { redisOptions: { host: there } }, `${nowhere}, but with "redisOptions": `],
    ['a host that is not set', { host: undefined }, `not options whose host is undefined (${unset}).`],
    ['the same beside a port', { host: undefined, port: 6379 }, `not options whose host is undefined (${unset}).`],
    ['an empty host', { host: '', password: secret }, `not options whose host is "" (${unset}).`],
    ['a path that is not set', { path: undefined }, `not options whose path is undefined (${unset}).`],
    ['a host that is no text', { host: { host: there } }, 'not options whose host is no text.'],
    ['the port of a service link', { host: there, port: `tcp://${secret}:6379` }, 'not the number of a port.'],
    [
      'a port that is not set',
      { host: there, port: Number.NaN },
      'not options whose port is not the number of a port.',
    ],
    [
      'a database that is not set',
      { host: there, db: Number.NaN },
      `not options whose db is NaN (${unset}): write one`,
    ],
    ['an empty database', { host: there, db: '' }, `not options whose db is "" (${unset}): write one such as db: 2,`],
    ['a database by name', { host: there, db: secret }, 'not options whose db is not the number of a database: write'],
    [
      'a database with a unit',
      { host: there, db: '3x' },
      'not options whose db is not the number of a database: write',
    ],
    [
      'a database with a point',
      { host: there, db: 1.5 },
      'not options whose db is not the number of a database: write',
    ],
    ['a database of node-redis', { socket: { host: there }, database: Number.NaN }, 'not options whose db is NaN'],
    [
      'TLS as a text',
      { host: there, tls: 'false' },
      'not options whose tls is not an object: for TLS, write tls: {}, or a',
    ],
    [
      'TLS as true',
      { host: there, tls: true },
      'not options whose tls is not an object: for TLS, write tls: {}, or a URL',
    ],
    ['TLS of node-redis as a text', { socket: { host: there, tls: 'false' } }, 'socket.tls is neither true nor false.'],
    [
      'TLS of nodes as a text',
      { cluster: [{ host: there }], redisOptions: { tls: 'false' } },
      'not options whose tls is not an object',
    ],
    [
      'TLS of sentinels as a text',
      { sentinels: [{ host: there }], name: 'a', sentinelTLS: 'false' },
      'not options whose sentinelTLS is not an object: for TLS, write sentinelTLS: {}',
    ],
    ...['/1.5', '/3x', '/0/1', '?db=1.5', '?db=abc'].map((path): [string, string, string] => [
      `a URL with ${path}`,
      `redis://${there}${path}`,
      'not a URL whose path is not a database number.',
    ]),
    [
      'a URL with TLS in its query',
      `redis://${there}/2?tls=false`,
      'not a URL with tls in its query: for TLS, begin it',
    ],
    ['a client without a database', new Redis({ host: there, db: Number.NaN, lazyConnect: true }), 'whose db is NaN'],
    [
      'a sentinel of nowhere',
      { sentinels: [{ host: undefined, port: 1 }], name: 'a' },
      'one of which is options whose',
    ],
    [
      'sentinels as a text',
      { sentinels: 'a:1,b:2', name: 'a' },
      'not options whose sentinels are not a list: write sentinels: [{ host, port }, ...]',
    ],
    ['no sentinels', { sentinels: [], name: 'a' }, 'not options whose sentinels are an empty list: write sentinels: ['],
    [
      'sentinels without the name of the primary',
      { sentinels: [{ host: '127.0.0.1', port: 1 }], password: secret },
      "not options with sentinels and without name: write sentinels: [{ host, port }, ...] and name: 'mymaster'",
    ],
    [
      'a sentinel as a text',
      { sentinels: [url], name: 'a' },
      'not sentinels, one of which is not an object: write { host',
    ],
    [
      'a node of nowhere',
      { cluster: [{ host: undefined, port: 7000 }] },
      `options whose host is undefined (${unset}).`,
    ],
  ];
  it.each(shapes)('%s', async (_, connection, message) => {
    for (const options of [
      { connection },
      { quorum: { connections: ['redis://127.0.0.1:1', connection, 'redis://127.0.0.1:2'] } },
    ]) {
      const isCluster = 'quorum' in options && Array.isArray(Object(connection).cluster);
      const imports = [RedisLockModule.forRootAsync({ useFactory: () => options as never })];
      const error = await rejection(Test.createTestingModule({ imports }).compile());
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toContain(isCluster ? 'not a Cluster' : message);
      expect(inspect(error, { depth: 9 })).not.toContain(secret);
    }
  });

  it.each([
    ['a host', { host: '127.0.0.1', port: '1', password: undefined, url: undefined }],
    ['a port, of this machine', { port: 1 }],
    ['a database as a text, and no TLS', { port: 1, db: '2', tls: false }],
    ['a client by the URL of TLS', new Redis('rediss://127.0.0.1:1/2', { lazyConnect: true })],
    ['a profile of TLS by name', 'redis://127.0.0.1:1/2?tls=RedisCloudFlexible'],
    ['a database in the query of a URL', 'redis://127.0.0.1:1?db=2'],
    ['a URL, as node-redis takes it', { url }],
    ['a socket, as node-redis takes it', { socket: { host: '127.0.0.1' }, password: secret }],
    ['nodes, as node-redis takes them', { rootNodes: [{ url }] }],
    ['an address of IPv6', { host: 'fe80::1%eth0', port: 1 }],
    ['a name with letters of a language', { host: 'b\u00fccher.example' }],
    ['a path beside a host that is not set', { host: undefined, path: '/tmp/none@all.sock' }],
    ['sentinels', { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'main' }],
    ['nodes of a cluster by port', { cluster: [1] }],
    ['a URL with an @ in its password', `redis://:a@b@127.0.0.1:1/0?family=4`],
  ])('but not %s', (_, connection) => {
    const template = statedConnection(connection as never).model;
    expect(template.status).toBe('wait');
  });
});

describe('a URL where a name of a server belongs is refused at boot, without showing its password', () => {
  const bare = `me:${secret}@redis.internal`;
  const sentinels = [{ host: '127.0.0.1', port: 1 }];
  const places: [string, string, () => unknown][] = [
    ['a host', 'host', () => ({ host: url })],
    ['a host with credentials', 'host', () => ({ host: bare, port: 6379 })],
    ['a path', 'path', () => ({ path: url })],
    ['a path from this folder on', 'path', () => ({ path: `./${secret}@redis.internal` })],
    ['a path with credentials', 'path', () => ({ path: bare })],
    ['a sentinel', 'host', () => ({ sentinels: [{ host: url, port: 1 }], name: 'main' })],
    ['the name of the primary', 'name', () => ({ sentinels, name: url })],
    ['a node of a cluster', 'host', () => ({ cluster: [{ host: url, port: 1 }] })],
    ['a client of the application', 'host', () => new Redis({ host: url, lazyConnect: true })],
    ['its sentinels', 'host', () => new Redis({ sentinels: [{ host: url }], name: 'main', lazyConnect: true })],
    ['its cluster', 'host', () => new Cluster([{ host: url }], { lazyConnect: true })],
    [
      'where a primary is reached',
      'host',
      () => ({ sentinels, name: 'main', natMap: { 'a:1': { host: bare, port: 1 } } }),
    ],
    [
      'where a node of its cluster is reached',
      'host',
      () => new Cluster([1], { lazyConnect: true, natMap: { 'a:1': { host: url, port: 1 } } }),
    ],
  ];
  it.each(places)('%s', async (_, option, make) => {
    const connection = make();
    const isCluster = Object(connection).cluster || (connection as Partial<Redis>).isCluster;
    const quorum = { connections: ['redis://127.0.0.1:1', connection as never] };
    for (const options of [{ connection: connection as never }, ...(isCluster ? [] : [{ quorum }])]) {
      const imports = [RedisLockModule.forRoot(options)];
      const error = await rejection(Test.createTestingModule({ imports }).compile());
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toContain(`not options whose ${option} has :// or @ in it`);
      expect(inspect(error, { depth: 9 })).not.toContain(secret);
    }
  });

  it.each<[string, unknown, string]>([
    [
      'the text of a cloud as host',
      { host: `h:6380,password=${secret},ssl=True` },
      'a host that is neither a name nor',
    ],
    ['an encoded URL as host', { host: encodeURIComponent(bare) }, 'a host that is neither a name nor an address'],
    ['the text of a cloud as name', { sentinels, name: `h,password=${secret}` }, 'a password in their name or path'],
    ['a query as path', { path: `/tmp/redis.sock?password=${secret}` }, 'a password in their name or path'],
  ])('%s', async (_, connection, what) => {
    const imports = [RedisLockModule.forRoot({ connection: connection as never })];
    const error = await rejection(Test.createTestingModule({ imports }).compile());
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toContain(`not options with ${what}`);
    expect(error.message).toContain(': write host, port, username, password and tls as options of their own.');
    expect(inspect(error, { depth: 9 })).not.toContain(secret);
  });
});
