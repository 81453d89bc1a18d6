import { inspect } from 'node:util';
import { jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Cluster, Redis } from 'ioredis';
import { InvalidLockOptionsError, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { statedConnection } from '../../../lib/redis/connection/connection-options.js';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

const secret = 'hunter2';

describe('options of the module', () => {
  /** Option, value, and what the message must say. */
  const bad: [string, unknown, string][] = [
    ['leaseMs', 49, 'leaseMs must be an integer from 50 to 86400000 (milliseconds), not 49.'],
    ['leaseMs', 0.5, 'leaseMs must be an integer from 50 to 86400000 (milliseconds), not 0.5.'],
    ['leaseMs', NaN, 'not NaN.'],
    ['leaseMs', Infinity, 'not Infinity.'],
    ['leaseMs', '30000', 'not "30000".'],
    ['waitMs', -1, 'waitMs must be an integer of 0 or more (milliseconds) or Infinity, not -1.'],
    ['watchdog', 'yes', 'watchdog must be true or false, not "yes".'],
    ['attemptTimeoutMs', 9, 'attemptTimeoutMs must be an integer from 10 to 60000 (milliseconds), not 9.'],
    ['keyPrefix', '', 'keyPrefix must be 1 to 100 characters without braces or white space, not "".'],
    ['keyPrefix', 'a b', 'not "a b".'],
    ['keyPrefix', '{a}', 'not "{a}".'],
    ['keyPrefix', null, 'not null.'],
    ['instanceId', 'a/b', 'instanceId must be 1 to 100 of A-Z a-z 0-9 _ . : @ -, not "a/b".'],
    ['observers', () => {}, 'observers must be an array, not a function.'],
    ['observers', [1], 'observers[0] must be a function, not 1.'],
    ['shutdown', { drain: 1 }, 'shutdown has no option "drain". Did you mean drainMs?'],
    ['shutdown', { drainMs: -1 }, 'shutdown.drainMs must be an integer from 0 to 3600000 (milliseconds), not -1.'],
    ['shutdown', 10_000, 'shutdown must be an object, not 10000.'],
  ];

  describe('RedisLockModule.forRoot refuses at once, naming option, value and what is allowed', () => {
    it.each(bad)('%s: %p', (option, value, message) => {
      const register = (): unknown => RedisLockModule.forRoot({ connection: 'memory:', [option]: value });
      expect(register).toThrow(InvalidLockOptionsError);
      expect(register).toThrow(message);
    });

    const extras: [string, object, string][] = [
      ['an unknown option', { leaseMS: 100 }, 'RedisLockModule.forRoot has no option "leaseMS". Did you mean leaseMs?'],
      ['a misspelt service', { serivce: 'billing' }, 'Did you mean service?'],
      ['an empty service', { service: '' }, 'service must be 1 to 100 characters, not "".'],
      ['a service that is none', { service: 5 }, 'service must be 1 to 100 characters, not 5.'],
      ['global that is no boolean', { global: 'no' }, 'global must be true or false, not "no".'],
      ['__proto__ as an option', JSON.parse('{"__proto__": {"leaseMs": 1}}') as object, 'has no option "__proto__"'],
    ];
    it.each(extras)('%s', (_, options, message) => {
      expect(() => RedisLockModule.forRoot(withConnection(options))).toThrow(message);
    });

    it('a missing connection, with an example', () => {
      expect(() => RedisLockModule.forRoot({} as never)).toThrow(
        'connection is missing. Set it to a URL such as redis://localhost:6379',
      );
    });

    it.each([
      ['forRoot', () => RedisLockModule.forRoot(`redis://:${secret}@localhost` as never)],
      ['forRootAsync', () => RedisLockModule.forRootAsync(`redis://:${secret}@localhost` as never)],
    ])('a URL in the place of the options of %s, without showing it', (method, register) => {
      expect(register).toThrow(`RedisLockModule.${method} must be an object, not a string.`);
    });

    it('no options at all', () => {
      expect(() => RedisLockModule.forRoot(undefined as never)).toThrow(
        'RedisLockModule.forRoot must be an object, not undefined.',
      );
    });
  });

  /** Keeps `__proto__` as an own property, as JSON.parse makes it. */
  function withConnection(options: object): never {
    return Object.defineProperties(
      { connection: 'memory:' },
      Object.getOwnPropertyDescriptors(options),
    ) as unknown as never;
  }

  describe('a connection that cannot be one fails at boot, without showing it', () => {
    const encode = 'not a URL with a /, ? or # before its @: encode the password with encodeURIComponent';
    const bad: [string, unknown, string][] = [
      [
        'a URL of something else',
        `http://:${secret}@localhost`,
        'not a string that begins with neither redis:// nor rediss://.',
      ],
      ['an empty string', '', 'not an empty string.'],
      ['a Promise', Promise.resolve({ host: 'localhost', password: secret }), 'not a Promise: await it.'],
      [
        'a client of node-redis 3',
        { send_command: () => {}, duplicate: () => {}, connected: true, options: { password: secret } },
        'not a node-redis client that does not expose its options: write the options in its place.',
      ],
      [
        'an object that takes locks',
        { acquire: () => {}, clients: [secret] },
        'not an object (Object) that acquires locks: pass the client that it was created with.',
      ],
      ['a URL with a port that is none', `redis://:${secret}@localhost:port`, 'not a URL that cannot be read.'],
      ['a URL with a slash in its password', `redis://:a/${secret}@localhost`, `${encode}.`],
      ['the same after digits', `redis://me:12/${secret}@localhost`, `${encode}.`],
      ['a URL with a # in its password', `redis://me:12#${secret}@localhost`, `${encode}.`],
      [
        'a URL without a host',
        `redis://:${secret}@/0`,
        'not a URL without a host (is an environment variable not set?).',
      ],
      [
        'a URL with nothing but a port',
        'redis://:6379',
        'not a URL without a host (is an environment variable not set?).',
      ],
      [
        'a URL that asks for a database by name',
        'redis://localhost/locks',
        'not a URL whose path is not a database number.',
      ],
      ['a connector that is none', { Connector: 5, password: secret }, 'not options that ioredis refuses.'],
      ['an array', [{ host: 'localhost', password: secret }], 'not an array of 1.'],
      ['a number', 6379, 'not 6379.'],
      [
        'a cluster with options that ioredis rejects',
        { cluster: [6379], scaleReads: 'nowhere', redisOptions: { password: secret } },
        'not cluster options that ioredis refuses.',
      ],
      ['a cluster of nobody', { cluster: [], redisOptions: { password: secret } }, 'not a cluster without nodes.'],
      [
        'a cluster with a bad URL',
        { cluster: [`http://:${secret}@localhost`] },
        'not a string that begins with neither redis:// nor rediss://.',
      ],
      [
        'a cluster in a cluster',
        { cluster: [{ cluster: [`redis://:${secret}@localhost`] }] },
        'not a cluster of clusters.',
      ],
    ];
    it.each(bad)('%s', async (_, connection, message) => {
      const imports = [RedisLockModule.forRoot({ connection: connection as never })];
      const error = await rejection(Test.createTestingModule({ imports }).compile());
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toBe(
        'connection must be a URL such as redis://localhost:6379, the path of a socket, ioredis options, the nodes of a ' +
          `cluster, or a client of ioredis, iovalkey or node-redis, ${message}`,
      );
      expect(inspect(error, { depth: 9 })).not.toContain(secret);
    });
  });

  describe('RedisLockModule.forRootAsync', () => {
    const boot = (options: object): Promise<unknown> => {
      const imports = [RedisLockModule.forRootAsync(options)];
      return Test.createTestingModule({ imports }).compile();
    };

    it('checks what the factory gives, at boot', async () => {
      const error = await rejection(boot({ useFactory: async () => ({ connection: 'memory:', leaseMs: 1 }) }));
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toBe('leaseMs must be an integer from 50 to 86400000 (milliseconds), not 1.');
    });

    it('names the place of service if the factory returns it', async () => {
      const error = await rejection(boot({ useFactory: () => ({ connection: 'memory:', service: 'billing' }) }));
      expect(error.message).toBe(
        'service is an option of RedisLockModule.forRootAsync itself, not of the factory: Nest needs it earlier.',
      );
    });

    it('passes an error of the factory on as it is', async () => {
      const failure = new Error('no configuration');
      expect(await rejection(boot({ useFactory: () => Promise.reject(failure) }))).toBe(failure);
    });

    it.each([
      [{}, 'RedisLockModule.forRootAsync needs one of useFactory, useClass and useExisting.'],
      [{ useFactroy: () => ({}) }, 'RedisLockModule.forRootAsync has no option "useFactroy". Did you mean useFactory?'],
      [{ connection: 'memory:' }, 'RedisLockModule.forRootAsync has no option "connection".'],
    ])('refuses %p at once', (options, message) => {
      expect(() => RedisLockModule.forRootAsync(options as never)).toThrow(InvalidLockOptionsError);
      expect(() => RedisLockModule.forRootAsync(options as never)).toThrow(message);
    });
  });
});

describe('RedisLockModule.forRoot refuses at once what could not survive a loss of data', () => {
  /** Options, and what the message must say. */
  const bad: [object, string][] = [
    [{ durability: {} }, 'durability.replicas must be an integer from 1 to 5 (replicas), not undefined.'],
    [{ durability: { replicas: 0 } }, 'durability.replicas must be an integer from 1 to 5 (replicas), not 0.'],
    [{ durability: { replica: 1 } }, 'durability has no option "replica". Did you mean replicas?'],
    [{ durability: 1 }, 'durability must be an object, not 1.'],
    [
      { durability: { replicas: 1, timeoutMs: 1_000 } },
      'durability.timeoutMs must be less than attemptTimeoutMs (1000), not 1000: otherwise each attempt would end first.',
    ],
    [
      { durability: { replicas: 1 }, leaseMs: 150 },
      'durability.timeoutMs must be less than a third of leaseMs (150), not 50: a lease is renewed after a third of it, and the renewal must be confirmed in time.',
    ],
    [
      { restartQuarantineMs: 14_999 },
      'restartQuarantineMs must be the longest lease of any application, so at least leaseMs (15000), not 14999.',
    ],
    [{ persistence: 'aof', restartQuarantineMs: 30_000 }, 'persistence must be one of \'always\', not "aof".'],
    [{ persistence: 'always' }, 'persistence has no effect without restartQuarantineMs'],
    [{ persistence: 'always', restartQuarantineMs: 0 }, 'persistence has no effect without restartQuarantineMs'],
    [{ restartQuarantineMs: Infinity }, 'restartQuarantineMs must be an integer from 50 to 86400000 (milliseconds)'],
  ];

  it.each(bad)('%j', (options, message) => {
    const register = (): unknown => RedisLockModule.forRoot({ connection: 'memory:', ...options } as never);
    expect(register).toThrow(InvalidLockOptionsError);
    expect(register).toThrow(message);
  });

  it('and takes what can', () => {
    const durability = { replicas: 5, timeoutMs: 999 };
    const options = { connection: 'memory:', durability, restartQuarantineMs: 30_000, persistence: 'always' } as const;
    expect(() => RedisLockModule.forRoot(options)).not.toThrow();
    const quorum = { connections: ['redis://a', 'redis://b', 'redis://c'] };
    expect(() => RedisLockModule.forRoot({ quorum, persistence: 'always' })).not.toThrow();
  });
});

/** Calls that take options and work, with the two in the wrong order, as JavaScript may. */
const CALLS: [string, (locks: RedisLockService, work: () => void, options: object) => Promise<unknown>][] = [
  ['using', (locks, ...wrong: unknown[]) => call(locks, 'using', 'stock', ...wrong)],
  ['tryUsing', (locks, ...wrong: unknown[]) => call(locks, 'tryUsing', 'stock', ...wrong)],
  ['using', (locks, ...wrong: unknown[]) => call(locks.semaphore('stock', { permits: 3 }), 'using', ...wrong)],
  ['tryUsing', (locks, ...wrong: unknown[]) => call(locks.semaphore('stock', { permits: 3 }), 'tryUsing', ...wrong)],
];

function call(target: object, method: string, ...args: unknown[]): Promise<unknown> {
  return (target as Record<string, (...args: unknown[]) => Promise<unknown>>)[method]!(...args);
}

describe('options after the work', () => {
  const start = useApps();

  it.each(CALLS)('%s refuses them before it locks anything', async (name, callWrong) => {
    const events: unknown[] = [];
    const observers = [(event: unknown) => events.push(event)];
    const { app } = await start({ imports: [inMemory({ observers })] });
    const work = jest.fn();
    const error = await rejection(callWrong(app.get(RedisLockService), work, { waitMs: 0 }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({
      option: 'work',
      message: `${name} takes the work last, after the options: ${name}(..., options, work).`,
    });
    expect(work).not.toHaveBeenCalled();
    expect(events).toEqual([]);
  });
});

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
      'not options of node-redis with "ttl", which ioredis does not have',
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

describe('a URL in place of a host name is rejected at boot, without showing its password', () => {
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
