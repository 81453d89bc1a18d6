import { compileFunction } from 'node:vm';
import { Controller, Get, Inject, Injectable, Module } from '@nestjs/common';
import {
  DistributedLock,
  DistributedSemaphore,
  InvalidLockOptionsError,
  LockHandler,
  ReadLock,
  RedisLockService,
  TransactionScope,
  typeormTransactional,
  WriteLock,
} from 'nestjs-redis-lock';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

type Method = (...args: unknown[]) => Promise<unknown>;

let events: string[] = [];

async function transaction(work: () => Promise<unknown>): Promise<unknown> {
  events.push('begin');
  const result = await work();
  // The database replies later, so work that doesn't wait for it comes first.
  await new Promise(setImmediate);
  events.push('commit');
  return result;
}

/** As `typeorm-transactional` does it: another function with the name and the metadata of the method. */
const TypeormTransactional = (): MethodDecorator => (_target, _name, descriptor: PropertyDescriptor) => {
  const original = descriptor.value as Method;
  descriptor.value = function (this: unknown, ...args: unknown[]) {
    return transaction(() => original.apply(this, args));
  };
  for (const key of Reflect.getMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, original), descriptor.value);
  }
  Object.defineProperty(descriptor.value, 'name', { value: original.name, writable: false });
};

/** As `@nestjs-cls/transactional` does it: a proxy, and the metadata once more. */
const ClsTransactional = (): MethodDecorator => (_target, _name, descriptor: PropertyDescriptor) => {
  const original = descriptor.value as Method;
  descriptor.value = new Proxy(original, {
    apply: (_, self, args: unknown[]) => transaction(() => original.apply(self, args)),
  });
  for (const key of Reflect.getMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, original), descriptor.value);
  }
};

function controllerWith(Transactional: () => MethodDecorator) {
  @Controller()
  class OrdersController {
    @Inject() readonly locks!: RedisLockService;

    @Get('lock-above')
    @DistributedLock('orders')
    @Transactional()
    async lockAbove(): Promise<void> {}

    @Get('lock-below')
    @Transactional()
    @DistributedLock('orders')
    async lockBelow(): Promise<void> {}

    @Get('handler-above')
    @LockHandler('orders')
    @Transactional()
    async handlerAbove(): Promise<void> {}

    @Get('handler-below')
    @Transactional()
    @LockHandler('orders')
    async handlerBelow(): Promise<void> {}

    @Get('both')
    @LockHandler('orders')
    @Transactional()
    @DistributedLock('orders')
    async both(): Promise<void> {}
  }
  return OrdersController;
}

describe.each([
  ['typeorm-transactional', TypeormTransactional],
  ['@nestjs-cls/transactional', ClsTransactional],
])('a handler with a lock and a @Transactional() as of %s', (_, Transactional) => {
  const start = useApps();

  it.each([
    ['lock-above', ['acquired', 'begin', 'commit', 'released']],
    // These copies have no code of the packages, so they are not recognized.
    ['lock-below', ['begin', 'acquired', 'released', 'commit']],
    ['handler-above', ['acquired', 'begin', 'commit', 'released']],
    ['handler-below', ['acquired', 'begin', 'commit', 'released']],
    ['both', ['acquired', 'begin', 'commit', 'released']],
  ])('commits and releases in this order: %s', async (path, order) => {
    events = [];
    const { app, url } = await start({ imports: [inMemory()], controllers: [controllerWith(Transactional)] });
    app.get(RedisLockService).observe(({ type }) => {
      if (type === 'acquired' || type === 'released') events.push(type);
    });
    expect((await fetch(`${url}/${path}`)).status).toBe(200);
    expect(events).toEqual(order);
  });
});

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
            `Shop\\.pay: @Transactional\\(\\) of ${library} is above ${decorator}.*Write ${decorator}\\(\\) above @Transactional\\(\\).*docs/guide/with-transactions\\.md`,
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
          message: expect.stringContaining(`Shop.pay: @Transactional() of ${library} is above @DistributedLock`),
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
      await expect(refused).rejects.toThrow('is above @DistributedLock');
      await expect(refused).rejects.toThrow(
        `transactions is set, but does not cover ${library}. Pass the transactions of ${library} to it with follow()`,
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

type Options = Parameters<typeof typeormTransactional>[0];

describe('typeormTransactional', () => {
  const runOnTransactionComplete = (): void => {};
  const getDataSourceByName = () => undefined;

  it.each([
    ['runOnTransactionComplete', { getDataSourceByName }],
    ['getDataSourceByName', { runOnTransactionComplete, getDataSourceByName: {} }],
    ['dataSources', { runOnTransactionComplete, getDataSourceByName, dataSources: 'default' }],
    ['dataSource', { runOnTransactionComplete, getDataSourceByName, dataSource: 'default' }],
  ])('refuses a wrong %s', (option, options) => {
    expect(() => typeormTransactional(options as unknown as Options)).toThrow(
      expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS', option }),
    );
  });

  it('finds the open transaction among several data sources', () => {
    const runner = (isTransactionActive: boolean) => ({ manager: { queryRunner: { isTransactionActive } } });
    const sources: Record<string, ReturnType<typeof runner> | { manager: object }> = {
      first: { manager: {} },
      ended: runner(false),
      open: runner(true),
    };
    const of = (...dataSources: string[]) =>
      typeormTransactional({ runOnTransactionComplete, getDataSourceByName: (name) => sources[name], dataSources });
    expect(of('first', 'ended', 'unknown').current()).toBeUndefined();
    const hooks = of('first', 'open');
    expect(hooks.current()).toBeDefined();
    expect(hooks.current()).toBe(hooks.current());
  });

  it('distinguishes the transactions of one query runner, which SQLite uses for all of them', async () => {
    const source = { manager: { queryRunner: { isTransactionActive: true } } };
    const ends: (() => void)[] = [];
    const hooks = typeormTransactional({
      runOnTransactionComplete: (callback) => void ends.push(callback),
      getDataSourceByName: () => source,
    });
    const first = hooks.current()!;
    const released = new Promise<void>((resolve) => hooks.runOnEnd(first, async () => resolve()));
    expect(hooks.current()).toBe(first);
    ends[0]!();
    await released;
    expect(hooks.current()).not.toBe(first);
  });
});

describe('TransactionScope', () => {
  it('a run inside of another one belongs to the outer one', async () => {
    const scope = new TransactionScope();
    expect(scope.current()).toBeUndefined();
    await scope.run(async () => {
      const outer = scope.current();
      expect(outer).toBeDefined();
      await scope.run(async () => expect(scope.current()).toBe(outer));
    });
  });

  it('follows an adapter: each has a transaction of its own, and a nested one belongs to the outer one', async () => {
    type Work = () => Promise<unknown>;
    class Adapter {
      readonly #isolation = 'serializable';
      optionsFactory = (connection: string) => ({
        wrapWithTransaction: async (_options: unknown, work: Work, setTx: (tx: string) => void) => {
          setTx(`${connection}, ${this.#isolation}`);
          return work();
        },
        wrapWithNestedTransaction: (_options: unknown, work: Work) => work(),
      });
    }
    const scope = new TransactionScope();
    const adapter = new Adapter();
    expect(scope.follow(adapter)).toBe(adapter);
    const { wrapWithTransaction, wrapWithNestedTransaction } = adapter.optionsFactory('postgres');
    const seen: unknown[] = [];
    const look = async () => void seen.push(scope.current());
    const setTx = (tx: string): void => void seen.push(tx);
    await wrapWithTransaction(
      {},
      async () => {
        await look();
        await wrapWithNestedTransaction({}, look);
        await wrapWithTransaction({}, look, () => {});
      },
      setTx,
    );
    const [tx, outer, nested, other] = seen;
    expect(tx).toBe('postgres, serializable');
    expect(outer).toBeDefined();
    expect(nested).toBe(outer);
    expect(other).not.toBe(outer);
  });

  it.each([[undefined], [{}], [{ optionsFactory: 'x' }]])('follows no %p', (adapter) => {
    expect(() => new TransactionScope().follow(adapter as never)).toThrow(InvalidLockOptionsError);
  });

  it('refuses options that do not open a transaction, and work that is no function', async () => {
    const adapter = new TransactionScope().follow({ optionsFactory: () => ({}) });
    expect(() => adapter.optionsFactory()).toThrow(InvalidLockOptionsError);
    const run = new TransactionScope().run('work' as never);
    await expect(run).rejects.toMatchObject({ option: 'transaction' });
  });
});

it.each([[{}], ['typeorm'], [{ current: () => undefined }], [null]])('the module option is not %p', (transactions) => {
  expect(() => inMemory({ transactions: transactions as never })).toThrow(
    expect.objectContaining({ option: 'transactions' }),
  );
});
