import { inspect } from 'node:util';
import { Test } from '@nestjs/testing';
import { InvalidLockOptionsError, RedisLockModule } from 'nestjs-redis-lock';
import { rejection } from '../../support/expect/eventually.js';

const secret = 'hunter2';

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
  ['shutdown', { drain: 1 }, 'shutdown does not know the option "drain". Did you mean drainMs?'],
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
    [
      'an unknown option',
      { leaseMS: 100 },
      'RedisLockModule.forRoot does not know the option "leaseMS". Did you mean leaseMs?',
    ],
    ['a misspelt service', { serivce: 'billing' }, 'Did you mean service?'],
    ['an empty service', { service: '' }, 'service must be 1 to 100 characters, not "".'],
    ['a service that is none', { service: 5 }, 'service must be 1 to 100 characters, not 5.'],
    ['global that is no boolean', { global: 'no' }, 'global must be true or false, not "no".'],
    [
      '__proto__ as an option',
      JSON.parse('{"__proto__": {"leaseMs": 1}}') as object,
      'does not know the option "__proto__"',
    ],
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
  const encode = 'not a URL with a /, ? or # before its @: encode the password by encodeURIComponent';
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
      'not a client of node-redis that does not show its options: write its options in its place.',
    ],
    [
      'an object that takes locks',
      { acquire: () => {}, clients: [secret] },
      'not an object (Object) that takes locks: give the client that it was made with.',
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

  it('tells where service belongs when the factory gives it', async () => {
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
    [
      { useFactroy: () => ({}) },
      'RedisLockModule.forRootAsync does not know the option "useFactroy". Did you mean useFactory?',
    ],
    [{ connection: 'memory:' }, 'RedisLockModule.forRootAsync does not know the option "connection".'],
  ])('refuses %p at once', (options, message) => {
    expect(() => RedisLockModule.forRootAsync(options as never)).toThrow(InvalidLockOptionsError);
    expect(() => RedisLockModule.forRootAsync(options as never)).toThrow(message);
  });
});
