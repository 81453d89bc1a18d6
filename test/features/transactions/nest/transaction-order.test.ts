import { compileFunction } from 'node:vm';
import { Controller, Get, Injectable, Module } from '@nestjs/common';
import {
  DistributedLock,
  DistributedSemaphore,
  LockHandler,
  ReadLock,
  RedisLockService,
  TransactionScope,
  WriteLock,
} from 'nestjs-redis-lock';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

type Method = (...args: unknown[]) => Promise<unknown>;
type Wrap = (transaction: (work: () => Promise<unknown>) => Promise<unknown>, original: Method) => Method;

/** Code as it stands in a file of another package. */
const codeOf = (file: string, code: string) =>
  compileFunction(code, ['transaction', 'original'], { filename: file }) as Wrap;

/** Recognized at the start: texts of the functions by which these packages replace a method. */
const WITH_TEXT: Record<string, Wrap> = {
  'typeorm-transactional': codeOf(
    '/app/bundle.js',
    `return function () {
      if (!transaction) throw Error('No CLS namespace defined in your app ... please call ...');
      return transaction(() => original.apply(this, arguments));
    }`,
  ),
  MikroORM: codeOf(
    '/app/bundle.js',
    `return async function (...args) {
      if (!transaction) throw Error(\`@Transactional() decorator can only be applied to methods of classes with \\\`orm\\\`\`);
      return transaction(() => original.apply(this, args));
    }`,
  ),
};

/** Recognized at the first call: their frames in the stack. */
const WITH_FRAME: Record<string, Wrap> = {
  '@nestjs-cls/transactional': codeOf(
    '/app/node_modules/@nestjs-cls/transactional-adapter-x/dist/src/lib/adapter.js',
    `return new Proxy(original, { apply: (_, self, args) => transaction(() => original.apply(self, args)) })`,
  ),
  'typeorm-transactional': codeOf(
    'C:\\app\\node_modules\\typeorm-transactional\\dist\\x.js',
    `return function () { return transaction(() => original.apply(this, arguments)); }`,
  ),
};

let commits = 0;
const TRANSACTION = async (work: () => Promise<unknown>): Promise<unknown> => {
  await Promise.resolve();
  const result = await work();
  commits++;
  return result;
};

const transactional =
  (wrap: Wrap, transaction = TRANSACTION): MethodDecorator =>
  (_target, _name, descriptor: PropertyDescriptor) => {
    descriptor.value = wrap(transaction, descriptor.value as Method);
  };

const LOCKS = {
  '@DistributedLock': () => DistributedLock({ key: 'stock' }),
  '@ReadLock': () => ReadLock('stock'),
  '@WriteLock': () => WriteLock('stock'),
  '@DistributedSemaphore': () => DistributedSemaphore({ key: 'stock', permits: 1 }),
} as Record<string, () => MethodDecorator>;

/** A class with a method of these decorators, the upper one first. */
function shopWith(...decorators: MethodDecorator[]) {
  class Shop {
    async pay(): Promise<string> {
      return 'paid';
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Shop.prototype, 'pay')!;
  const made = Reflect.decorate(decorators, Shop.prototype, 'pay', descriptor) as PropertyDescriptor;
  Object.defineProperty(Shop.prototype, 'pay', made);
  Injectable()(Shop);
  return Shop;
}

describe('a @Transactional() around a lock', () => {
  const start = useApps();

  describe.each(Object.keys(WITH_TEXT))('of %s', (library) => {
    const Transactional = transactional(WITH_TEXT[library]!);

    it.each(Object.keys(LOCKS))('above %s: the application does not start', async (decorator) => {
      const Shop = shopWith(Transactional, LOCKS[decorator]!());
      const starting = start({ imports: [inMemory()], providers: [Shop] });
      await expect(starting).rejects.toMatchObject({
        code: 'INVALID_LOCK_OPTIONS',
        message: expect.stringMatching(
          new RegExp(
            `Shop\\.pay: @Transactional\\(\\) of ${library} stands above ${decorator}.*Write ${decorator}\\(\\) above @Transactional\\(\\).*docs/guide/with-transactions\\.md`,
          ),
        ),
      });
    });

    it('is found in a base class, and in a subclass of a feature module', async () => {
      const Base = shopWith(Transactional, DistributedLock('stock'));
      @Injectable()
      class Branch extends Base {}
      @Module({ providers: [Branch] })
      class Feature {}
      await expect(start({ imports: [inMemory(), Feature] })).rejects.toThrow('Shop.pay');
    });

    it.each([
      ['below the lock', [DistributedLock('stock'), Transactional]],
      [
        'with @LockHandler, which is outside',
        [Get('pay'), LockHandler('stock'), Transactional, DistributedLock('stock')],
      ],
    ] as [string, MethodDecorator[]][])('is right %s', async (_, decorators) => {
      const Shop = shopWith(...decorators);
      Controller()(Shop);
      const { app } = await start({ imports: [inMemory()], controllers: [Shop] });
      expect(app.get(Shop)).toBeDefined();
    });

    it('is correct if the release waits for the transaction', async () => {
      const transactions = new TransactionScope();
      const inScope = (work: () => Promise<unknown>) => transactions.run(() => TRANSACTION(work));
      const Shop = shopWith(transactional(WITH_TEXT[library]!, inScope), DistributedLock('stock'));
      const { app } = await start({ imports: [inMemory({ transactions })], providers: [Shop] });
      const order: string[] = [];
      app.get(RedisLockService).observe(({ type }) => {
        if (type === 'released') order.push(`released after ${commits - before} commit`);
      });
      const before = commits;
      expect(await app.get(Shop).pay()).toBe('paid');
      expect(order).toEqual(['released after 1 commit']);
    });
  });

  describe.each(Object.keys(WITH_FRAME))('of %s, which is not recognized at the start', (library) => {
    it('refuses each call, before the method runs', async () => {
      const Shop = shopWith(transactional(WITH_FRAME[library]!), DistributedLock('stock'));
      const { app } = await start({ imports: [inMemory()], providers: [Shop] });
      for (let call = 0; call < 2; call++) {
        await expect(app.get(Shop).pay()).rejects.toMatchObject({
          code: 'INVALID_LOCK_OPTIONS',
          message: expect.stringContaining(`Shop.pay: @Transactional() of ${library} stands above @DistributedLock`),
        });
      }
    });

    it('refuses it with hooks that do not know the transaction', async () => {
      const Shop = shopWith(transactional(WITH_FRAME[library]!), DistributedLock('stock'));
      const { app } = await start({
        imports: [inMemory({ transactions: new TransactionScope() })],
        providers: [Shop],
      });
      const refused = app.get(Shop).pay();
      await expect(refused).rejects.toThrow('stands above @DistributedLock');
      await expect(refused).rejects.toThrow(
        `transactions is set, but does not cover this one. Pass the transactions of ${library} to it with follow()`,
      );
    });

    it('accepts it if @LockHandler holds the lock already, outside of the transaction', async () => {
      const Shop = shopWith(
        Get('pay'),
        LockHandler('stock'),
        transactional(WITH_FRAME[library]!),
        DistributedLock('stock'),
      );
      Controller()(Shop);
      const { url } = await start({ imports: [inMemory()], controllers: [Shop] });
      expect(await (await fetch(`${url}/pay`)).text()).toBe('paid');
    });

    it('warns once of a locked method that a service calls inside of its transaction', async () => {
      const Shop = shopWith(DistributedLock('stock'));
      class Orders {
        constructor(readonly shop: { pay(): Promise<string> }) {}
      }
      const { app, log } = await start({ imports: [inMemory()], providers: [Shop] });
      const orders = new Orders(app.get(Shop));
      const place = WITH_FRAME[library]!(TRANSACTION, async () => `${await orders.shop.pay()}, placed`);
      expect([await place(), await place()]).toEqual(['paid, placed', 'paid, placed']);
      expect(log.at('warn')).toEqual([
        expect.stringMatching(
          `^Shop.pay was called inside a transaction of ${library}.*before the commit.*` +
            'Take the lock outside: call Shop.pay before the transaction begins. Or set the module option transactions',
        ),
      ]);
    });
  });

  it('an unknown wrapper is ignored', async () => {
    const unknown = codeOf(
      '/app/x.js',
      `return new Proxy(original, { apply: (_, self, args) => original.apply(self, args) })`,
    );
    const Shop = shopWith(transactional(unknown), DistributedLock('stock'));
    const { app, log } = await start({ imports: [inMemory()], providers: [Shop] });
    expect(await app.get(Shop).pay()).toBe('paid');
    expect(log.at('warn')).toEqual([]);
  });
});
