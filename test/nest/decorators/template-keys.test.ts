import {
  DistributedLock,
  DistributedSemaphore,
  InvalidLockOptionsError,
  InvalidResourceError,
  key,
  LeaderOnly,
  LockHandler,
  ReadLock,
  RedisLockService,
  WriteLock,
} from 'nestjs-redis-lock';
import { SingletonCron, SingletonInterval, SingletonTimeout } from 'nestjs-redis-lock/schedule';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

/** A forgotten backtick. */
const PLAIN = 'order:$' + '{id}';

const KEYED: [string, () => MethodDecorator][] = [
  ['DistributedLock', () => DistributedLock(PLAIN) as MethodDecorator],
  ['DistributedLock with one of several keys', () => DistributedLock(['stock', PLAIN]) as MethodDecorator],
  ['DistributedLock with options', () => DistributedLock({ key: PLAIN, waitMs: 0 }) as MethodDecorator],
  ['ReadLock', () => ReadLock(PLAIN) as MethodDecorator],
  ['WriteLock', () => WriteLock({ key: [PLAIN] }) as MethodDecorator],
  ['DistributedSemaphore', () => DistributedSemaphore({ key: PLAIN, permits: 3 }) as MethodDecorator],
  ['LockHandler', () => LockHandler(PLAIN)],
  ['LockHandler with permits', () => LockHandler({ key: PLAIN, permits: 3 })],
];

const NAMED: [string, () => MethodDecorator][] = [
  ['LeaderOnly', () => LeaderOnly(PLAIN) as MethodDecorator],
  ['SingletonCron', () => SingletonCron('* * * * *', { name: PLAIN }) as MethodDecorator],
  ['SingletonInterval', () => SingletonInterval(PLAIN, 1_000) as MethodDecorator],
  ['SingletonTimeout', () => SingletonTimeout(1_000, { name: PLAIN }) as MethodDecorator],
];

function errorOf(decorator: () => MethodDecorator): unknown {
  try {
    class Shop {
      @decorator()
      async pay(): Promise<void> {}
    }
    return Shop;
  } catch (error) {
    return error;
  }
}

describe('a template string in plain quotes', () => {
  const start = useApps();

  it.each(KEYED)('is no key of @%s: the class is not defined', (_, decorator) => {
    const error = errorOf(decorator);
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({
      option: 'key',
      message:
        'The key of the lock of Shop.pay is "order:${id}". In plain quotes, ${...} is not replaced by a value. ' +
        'Write a function with backticks: (id) => key`order:${id}`.',
    });
  });

  it.each(NAMED)('is no name of @%s: the class is not defined', (_, decorator) => {
    const error = errorOf(decorator);
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({
      option: 'name',
      message: expect.stringMatching(
        /^The name of the \w+ of Shop\.pay is "order:\$\{id\}"\. .* Write it in backticks\.$/,
      ),
    });
  });

  it('may be a name that comes from outside: in a call, and from a key function', async () => {
    class Shop {
      constructor(readonly locks: RedisLockService) {}

      @DistributedLock((id: string) => key`order:${id}`)
      async pay(_id: string): Promise<string | undefined> {
        return this.locks.current()?.resource;
      }
    }
    Reflect.defineMetadata('design:paramtypes', [RedisLockService], Shop);
    const { app } = await start({ imports: [inMemory()], providers: [Shop] });
    expect(await app.get(Shop).pay('${id}')).toBe(PLAIN);
    expect(await app.get(RedisLockService).using(PLAIN, ({ resource }) => resource)).toBe(PLAIN);
  });
});

describe('a template string without the tag, and a missing value', () => {
  const start = useApps();

  class Shop {
    @DistributedLock((id?: string) => `order:${id}`)
    async pay(_id?: string): Promise<string> {
      return 'paid';
    }
  }

  it('is refused at the call, which names the method', async () => {
    const { app } = await start({ imports: [inMemory()], providers: [Shop] });
    await expect(app.get(Shop).pay('7')).resolves.toBe('paid');
    const error = await rejection(app.get(Shop).pay());
    expect(error).toBeInstanceOf(InvalidResourceError);
    expect(error.message).toMatch(
      /^The resource given to Shop\.pay cannot be used: "undefined" in "order:undefined" is/,
    );
  });

  it('is a name where the module allows it', async () => {
    const { app } = await start({ imports: [inMemory({ unclearNames: 'allow' })], providers: [Shop] });
    await expect(app.get(Shop).pay()).resolves.toBe('paid');
  });
});
