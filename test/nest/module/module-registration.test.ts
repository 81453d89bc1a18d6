import { Controller, Get, Injectable, Module, type ModuleMetadata } from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import {
  DistributedLock,
  getRedisLockToken,
  InjectRedisLock,
  InvalidLockOptionsError,
  LockHandler,
  RedisLockModule,
  type RedisLockModuleOptions,
  type RedisLockOptionsFactory,
  RedisLockService,
} from 'nestjs-redis-lock';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, LogBook, useApps } from '../nest-apps.js';

@Injectable()
class Config implements RedisLockOptionsFactory {
  readonly url = 'memory:';

  createRedisLockOptions(): RedisLockModuleOptions {
    return { connection: this.url, shutdown: { drainMs: 0 } };
  }
}

@Module({ providers: [Config], exports: [Config] })
class ConfigModule {}

@Injectable()
class Orders {
  constructor(
    readonly byType: RedisLockService,
    @InjectRedisLock() readonly byDecorator: RedisLockService,
  ) {}

  @DistributedLock('orders')
  async all(): Promise<string | undefined> {
    return this.byType.current()?.resource;
  }
}

@Injectable()
class Invoices {
  constructor(
    @InjectRedisLock('billing') readonly billing: RedisLockService,
    readonly locks: RedisLockService,
  ) {}
}

describe('RedisLockModule is registered', () => {
  const start = useApps();
  const options: Parameters<typeof RedisLockModule.forRootAsync>[0][] = [
    { imports: [ConfigModule], inject: [Config], useFactory: (config: Config) => config.createRedisLockOptions() },
    {
      imports: [ConfigModule],
      inject: [{ token: 'MISSING', optional: true }, Config],
      useFactory: async (missing: undefined, config: Config) => missing ?? config.createRedisLockOptions(),
    },
    { useFactory: () => ({ connection: 'memory:' }) },
    { useClass: Config },
    { imports: [ConfigModule], useExisting: Config },
  ];
  it.each(options)('by forRootAsync with %p', async (given) => {
    const { app } = await start({ imports: [RedisLockModule.forRootAsync(given)], providers: [Orders] });
    expect(await app.get(Orders).all()).toBe('orders');
  });

  it('once for every module, and injected by type and by @InjectRedisLock', async () => {
    @Module({ providers: [Orders] })
    class OrdersModule {}
    const { app } = await start({ imports: [inMemory(), OrdersModule] });
    const { byType, byDecorator } = app.get(Orders, { strict: false });
    expect(byType).toBeInstanceOf(RedisLockService);
    expect(byDecorator).toBe(byType);
    expect(app.get(getRedisLockToken())).toBe(byType);
  });

  it('twice, by name: two independent services', async () => {
    const { app } = await start({ imports: [inMemory(), inMemory({ service: 'billing' })], providers: [Invoices] });
    const { billing, locks } = app.get(Invoices);
    expect(billing).not.toBe(locks);
    await using lease = await billing.acquire('invoice');
    expect(await locks.tryAcquire('invoice').then((other) => other?.release())).toBeUndefined();
    expect(await billing.tryAcquire('invoice')).toBeNull();
    expect(lease.isHeld()).toBe(true);
  });

  it('by name and asynchronously, without a default one', async () => {
    @Injectable()
    class OnlyBilling {
      constructor(@InjectRedisLock('billing') readonly billing: RedisLockService) {}
    }
    const imports = [RedisLockModule.forRootAsync({ service: 'billing', useClass: Config })];
    const { app } = await start({ imports, providers: [OnlyBilling] });
    expect(app.get(OnlyBilling).billing).toBeInstanceOf(RedisLockService);
    expect(() => app.get(RedisLockService)).toThrow('does not exist in the current context');
  });

  it('twice, by name: handlers lock in the one that they name', async () => {
    @Controller()
    class InvoicesController {
      @Get()
      @LockHandler({ key: 'invoice', service: 'billing', waitMs: 0, onBusy: () => 'busy' })
      async send(): Promise<string> {
        return 'sent';
      }
    }
    const { app, url } = await start({
      imports: [inMemory(), inMemory({ service: 'billing' })],
      controllers: [InvoicesController],
    });
    const send = async (): Promise<string> => (await fetch(url)).text();
    expect(await send()).toBe('sent');
    await using _default = await app.get(RedisLockService).acquire('invoice');
    expect(await send()).toBe('sent');
    await using _billing = await app.get<RedisLockService>(getRedisLockToken('billing')).acquire('invoice');
    expect(await send()).toBe('busy');
  });

  it('with global: false, for the modules that import it only', async () => {
    @Module({ providers: [Orders] })
    class Outside {}
    @Module({ imports: [inMemory({ global: false })], providers: [Orders] })
    class Inside {}
    const error = await rejection(start({ imports: [Inside, Outside] }));
    expect(error.message).toContain("Nest can't resolve dependencies of the Orders");
    const { app } = await start({ imports: [Inside] });
    expect(await app.get(Orders, { strict: false }).all()).toBe('orders');
  });

  it('with global: false by two modules, by name: methods and handlers of each lock in their own', async () => {
    const events: string[] = [];
    const observedBy = (name: string) =>
      inMemory({
        service: name,
        global: false,
        observers: [(event) => event.type === 'acquired' && events.push(`${name} ${event.resource}`)],
      });
    const controllerFor = (path: string, lockService: string) => {
      @Controller(path)
      class SomeController {
        @Get()
        @LockHandler({ key: `handler:${path}`, service: lockService })
        @DistributedLock({ key: `method:${path}`, service: lockService })
        async get(): Promise<void> {}
      }
      return SomeController;
    };
    @Module({ imports: [observedBy('A')], controllers: [controllerFor('a', 'A')] })
    class A {}
    @Module({ imports: [observedBy('B')], controllers: [controllerFor('b', 'B')] })
    class B {}
    const { url } = await start({ imports: [A, B] });
    await fetch(`${url}/a`);
    await fetch(`${url}/b`);
    expect(events).toEqual(['A handler:a', 'A method:a', 'B handler:b', 'B method:b']);
  });
});

describe('RedisLockModule is registered twice under one name', () => {
  const start = useApps();
  const here = 'module-registration.test.ts';
  const memory = { connection: 'memory:', shutdown: { drainMs: 0 } };
  const refusal = async (
    imports: ModuleMetadata['imports'] = [],
    options?: { moduleIdGeneratorAlgorithm: 'deep-hash' },
  ) => {
    @Module({ imports })
    class Root {}
    const made = NestFactory.createApplicationContext(Root, { logger: false, abortOnError: false, ...options });
    const error = await rejection(made.then((app) => app.close()));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect((error as InvalidLockOptionsError).option).toBe('name');
    return error.message;
  };

  it('which refuses to boot and says where: by the root module and by one of its own modules', async () => {
    @Module({ imports: [RedisLockModule.forRoot({ ...memory, keyPrefix: 'orders' })], providers: [Orders] })
    class OrdersModule {}
    const message = await refusal([RedisLockModule.forRoot(memory), OrdersModule]);
    expect(message).toContain('RedisLockModule is registered 2 times as "default" in one application');
    expect([...message.matchAll(new RegExp(`${here}:\\d+:\\d+`, 'g'))]).toHaveLength(2);
    expect(new Set(message.match(new RegExp(`${here}:\\d+`, 'g'))).size).toBe(2);
    expect(message).toContain('its own name');
  });

  it('whichever way, and however alike', async () => {
    const registered = (global = true) => RedisLockModule.forRoot({ ...memory, global, instanceId: 'alike' });
    const asynchronously = (global = true) => RedisLockModule.forRootAsync({ global, useFactory: () => memory });
    const pairs = [
      [registered(), registered()],
      [asynchronously(), asynchronously()],
      [registered(), asynchronously()],
      [registered(false), registered()],
      [registered(false), asynchronously(false)],
    ];
    for (const pair of pairs) expect(await refusal(pair)).toContain('2 times as "default"');
    const alike = { moduleIdGeneratorAlgorithm: 'deep-hash' } as const;
    expect(await refusal([registered(), registered()], alike)).toContain('2 times as "default"');
    const billing = () => RedisLockModule.forRoot({ ...memory, service: 'billing' });
    expect(await refusal([registered(), billing(), billing(), billing()])).toContain('3 times as "billing"');
  });

  it('by a module that is loaded later: that one is refused, the others continue', async () => {
    const { app } = await start({ imports: [inMemory()], providers: [Orders] });
    @Module({ imports: [inMemory()] })
    class LateModule {}
    const error = await rejection(app.get(LazyModuleLoader).load(() => LateModule));
    expect(error.message).toContain('2 times as "default"');
    expect(await app.get(Orders).all()).toBe('orders');
  });

  it('is one service where it is the same dynamic module, in as many modules as want it', async () => {
    const locks = inMemory({ global: false });
    @Module({ imports: [locks], providers: [Orders] })
    class A {}
    @Module({ imports: [locks] })
    class B {}
    const { app } = await start({ imports: [A, B, locks] });
    expect(app.get(Orders, { strict: false }).byType).toBe(app.get(RedisLockService, { strict: false }));
  });

  it('is two services where it is by two applications of one process, also of one dynamic module', async () => {
    const locks = inMemory();
    const apps = [await start({ imports: [locks] }), await start({ imports: [locks] })];
    const [first, second] = apps.map(({ app }) => app.get(RedisLockService));
    expect(first).not.toBe(second);
  });

  it('is one service where a test puts another module in the place of one of them', async () => {
    const ofOrders = inMemory();
    @Module({ imports: [ofOrders], providers: [Orders] })
    class OrdersModule {}
    @Module({})
    class Nothing {}
    const { app } = await start({
      imports: [inMemory(), OrdersModule],
      override: (builder) => builder.overrideModule(ofOrders).useModule(Nothing),
    });
    expect(await app.get(Orders, { strict: false }).all()).toBe('orders');
  });
});

describe('an application that forgets the module does not boot, and is told what to import', () => {
  const boot = (provider: new (...args: never[]) => unknown): Promise<Error> =>
    rejection(
      Test.createTestingModule({ providers: [provider] })
        .setLogger(new LogBook())
        .compile(),
    );

  it('for a locked method', async () => {
    class Reports {
      @DistributedLock('x')
      async build(): Promise<void> {}
    }
    const { message } = await boot(Reports);
    expect(message).toContain("Nest can't resolve dependencies of the Reports");
    expect(message).toContain('RedisLockService: import RedisLockModule.forRoot({ ... }) in your root module');
  });

  it('for a service by name, with the name to register', async () => {
    class Reports {
      @DistributedLock({ key: 'x', service: 'billing' })
      async build(): Promise<void> {}
    }
    const imports = [inMemory()];
    const error = await rejection(Test.createTestingModule({ imports, providers: [Reports] }).compile());
    expect(error.message).toContain(
      'RedisLockService "billing": import RedisLockModule.forRoot({ name: "billing", ... })',
    );
  });

  it('for a handler', async () => {
    class ReportsController {
      @Get()
      @LockHandler('x')
      build(): void {}
    }
    Controller()(ReportsController);
    const error = await rejection(Test.createTestingModule({ controllers: [ReportsController] }).compile());
    expect(error.message).toContain("Nest can't resolve dependencies of the LockInterceptor");
    expect(error.message).toContain('"RedisLockService:default"');
  });

  it('for a handler that names a service nobody registered', async () => {
    class ReportsController {
      @Get()
      @LockHandler({ key: 'x', service: 'biling' })
      build(): void {}
    }
    Controller()(ReportsController);
    const imports = [inMemory({ service: 'billing' })];
    const error = await rejection(Test.createTestingModule({ imports, controllers: [ReportsController] }).compile());
    expect(error.message).toContain('"RedisLockService:biling"');
  });
});
