import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  DistributedLock,
  DistributedSemaphore,
  InvalidLockOptionsError,
  key,
  LockHandler,
  LockModuleMissingError,
  ReadLock,
  RedisLockModule,
  RedisLockService,
  WriteLock,
} from 'nestjs-redis-lock';
import { SingletonCron, SingletonTimeout } from 'nestjs-redis-lock/schedule';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

/** As JavaScript calls it, or TypeScript with a mistake that was silenced. */
type Loose = (...args: unknown[]) => never;

const thrown = (call: () => unknown): Error => {
  try {
    call();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
};

/** Applies a decorator to a method, as the compiler does. */
const decorate = (decorator: Loose, args: unknown[], name = 'pay', value: unknown = async () => {}): unknown => {
  class Shop {}
  if (value !== null) Object.defineProperty(Shop.prototype, name, { value, configurable: true });
  const descriptor = Object.getOwnPropertyDescriptor(Shop.prototype, name);
  return (decorator(...args) as Loose)(Shop.prototype, name, descriptor);
};

describe('the mistakes of the first day: each error says what to write', () => {
  const start = useApps();
  const locks = async (): Promise<RedisLockService> => {
    const { app } = await start({ imports: [inMemory()] });
    return app.get(RedisLockService);
  };

  it.each([
    [
      { host: 'redis', port: 6379 },
      'host',
      "Put it into connection: { connection: { host: 'localhost', port: 6379 } }.",
    ],
    [{ url: 'redis://:secret@redis' }, 'url', "Put it into connection: { connection: 'redis://localhost:6379' }."],
    [{ client: {} }, 'client', 'Put it into connection: { connection: client }.'],
    [{ sentinels: [], name: 'x' }, 'sentinels', 'Put it into connection: { connection: { sentinels: [...]'],
    [{ connection: 'memory:', ttl: 5_000 }, 'ttl', 'ttl is called leaseMs here.'],
    [{ connection: 'memory:', timeout: 5_000 }, 'timeout', 'timeout is called waitMs here.'],
    [{ connection: 'memory:', retryCount: 5 }, 'retryCount', 'It knows: connection,'],
    [{ connection: 'memory:', prefix: 'shop' }, 'prefix', 'prefix is called keyPrefix here.'],
  ])('forRoot(%o)', (options, option, advice) => {
    const error = thrown(() => (RedisLockModule.forRoot as Loose)(options)) as InvalidLockOptionsError;
    expect(error.message).toMatch(`RedisLockModule.forRoot does not know the option "${option}". ${advice}`);
    expect(error.option).toBe(option);
    expect(error.message).not.toContain('secret');
  });

  it.each<[string, Loose, object]>([
    ['DistributedLock', DistributedLock as Loose, { waitMs: 1_000 }],
    ['ReadLock', ReadLock as Loose, {}],
    ['LockHandler', LockHandler as Loose, { leaseMs: 1_000 }],
    ['DistributedSemaphore', DistributedSemaphore as Loose, { permits: 2 }],
  ])('@%s without a key', (_, decorator, options) => {
    expect(thrown(() => decorate(decorator, [options])).message).toBe(
      "key is missing in the lock of Shop.pay: it names the resource to lock. Write key: 'reports', or a function of " +
        'the parameters: key: (id: string) => key`order:${id}`.',
    );
  });

  it.each<[string, object, string]>([
    ['keys', { keys: ['a', 'b'] }, "keys is called key here, and takes several names too: key: ['a', 'b']."],
    ['resource', { resource: 'a' }, "resource is called key here, and takes several names too: key: ['a', 'b']."],
    ['ttl', { key: 'a', ttl: 5 }, 'ttl is called leaseMs here.'],
    ['retryDelay', { key: 'a', retryDelay: 5 }, 'retryDelay is called retry here.'],
  ])('@DistributedLock with %s', (option, options, advice) => {
    const { message } = thrown(() => decorate(DistributedLock as Loose, [options]));
    expect(message).toBe(`The lock of Shop.pay does not know the option "${option}". ${advice}`);
  });

  it.each<[string, Loose]>([
    ['DistributedLock', DistributedLock as Loose],
    ['ReadLock', ReadLock as Loose],
    ['WriteLock', WriteLock as Loose],
    ['LockHandler', LockHandler as Loose],
  ])('@%s with a key and options', (decorator, decorate) => {
    const error = thrown(() => decorate('a', { waitMs: 0 }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toBe(
      `@${decorator} takes one argument, not 2. Write the key into the options: @${decorator}({ key: ..., ... }).`,
    );
  });

  it.each<[string, Loose, unknown[]]>([
    ['DistributedLock', DistributedLock as Loose, ['a']],
    ['LockHandler', LockHandler as Loose, ['a']],
    ['SingletonCron', SingletonCron as Loose, ['0 0 * * *']],
  ])('@%s on an arrow function', (_, decorator, args) => {
    expect(thrown(() => decorate(decorator, args, 'pay', null)).message).toBe(
      'Shop.pay is a property, and this decorator is for methods. A property with an arrow function is created again for each ' +
        'object, after the decorator has run. Write a method: async pay() { ... }.',
    );
  });

  it.each<[string, Loose, unknown]>([
    ['SingletonCron', SingletonCron as Loose, '0 0 * * *'],
    ['SingletonTimeout', SingletonTimeout as Loose, 1_000],
  ])('@%s with its name behind the schedule', (_, decorator, when) => {
    expect(thrown(() => decorate(decorator, [when, 'nightly'])).message).toBe(
      'The schedule of Shop.pay must be an object, not a text. For the name of the job, write { name: "nightly" }.',
    );
  });

  it('two decorators with one key', () => {
    const twice = (): unknown => {
      class Shop {
        @DistributedLock('a')
        @DistributedLock(['b', 'a'])
        async pay(): Promise<void> {}
      }
      return Shop;
    };
    expect(thrown(twice).message).toBe(
      'Shop.pay is locked by "a" twice, so each call would wait for itself. Remove one of the two decorators.',
    );
  });

  it('using() and acquire() with a number in the place of options', async () => {
    const service = await locks();
    const error = await rejection((service.using as Loose)('a', 5_000, () => {}));
    expect(error.message).toBe(
      'lock options must be an object, not 5000. Say which time it is: { waitMs: 5000 } or { leaseMs: 5000 }.',
    );
    expect((await rejection((service.acquire as Loose)('a', 5_000))).message).toBe(error.message);
    expect((await rejection((service.acquire as Loose)('a', { ttl: 1 }))).message).toBe(
      'lock options do not know the option "ttl". ttl is called leaseMs here.',
    );
  });

  it('new RedisLockService(), and the service as a provider', async () => {
    const error = thrown(() => new (RedisLockService as unknown as new (...args: unknown[]) => object)('redis://x'));
    expect(error).toBeInstanceOf(LockModuleMissingError);
    expect(error.message).toBe(
      'RedisLockService is not made by new, and not listed as a provider: RedisLockModule makes it. Import ' +
        'RedisLockModule.forRoot({ connection: ... }) in the root module, and inject the service. In a unit test, use ' +
        'passThroughLocks() of nestjs-redis-lock/testing.',
    );
    const module = Test.createTestingModule({ providers: [RedisLockService] });
    await expect(module.compile()).rejects.toThrow(/RedisLockService/);
  });

  it.each([undefined, null, Number.NaN, {}])('an ordinary template string with %s', async (id) => {
    @Injectable()
    class Orders {
      @DistributedLock((order: unknown) => `order:${String(order)}`)
      async pay(_order: unknown): Promise<void> {}

      @DistributedLock((order: string) => key`order:${order}`)
      async refund(_order: string): Promise<void> {}
    }
    const { app } = await start({ imports: [inMemory()], providers: [Orders] });
    const { message } = await rejection(app.get(Orders).pay(id));
    expect(message).toContain('is what a template string makes of a missing value');
    expect(message).toContain('The tag "key" names the value that is missing: key`order:${id}`.');
    expect(message).toContain("suspiciousNames: 'allow'");
    expect((await rejection(app.get(Orders).refund(id as never))).message).toMatch(
      /Value 1 of a key, after "order:", is/,
    );
    const lax = await start({ imports: [inMemory({ suspiciousNames: 'allow' })], providers: [Orders] });
    await lax.app.get(Orders).pay(id);
  });
});
