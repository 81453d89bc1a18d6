import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  DistributedLock,
  getRedisLockToken,
  InjectRedisLock,
  LockHandler,
  RedisLockModule,
  type RedisLockModuleOptions,
  type RedisLockOptionsFactory,
  RedisLockService,
} from 'nestjs-redis-lock';
import { rejection } from '../support/eventually.js';
import { inMemory, LogBook, useApps } from '../support/nest-apps.js';

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
    const { app } = await start({ imports: [inMemory(), inMemory({ name: 'billing' })], providers: [Invoices] });
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
    const imports = [RedisLockModule.forRootAsync({ name: 'billing', useClass: Config })];
    const { app } = await start({ imports, providers: [OnlyBilling] });
    expect(app.get(OnlyBilling).billing).toBeInstanceOf(RedisLockService);
    expect(() => app.get(RedisLockService)).toThrow('does not exist in the current context');
  });

  it('twice, by name: handlers lock in the one that they name', async () => {
    @Controller()
    class InvoicesController {
      @Get()
      @LockHandler({ key: 'invoice', lockService: 'billing', waitMs: 0, onBusy: () => 'busy' })
      async send(): Promise<string> {
        return 'sent';
      }
    }
    const { app, url } = await start({
      imports: [inMemory(), inMemory({ name: 'billing' })],
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

  it('with global: false by two modules: methods and handlers of each lock in their own', async () => {
    const events: string[] = [];
    const observedBy = (who: string) =>
      inMemory({
        global: false,
        observers: [(event) => event.type === 'acquired' && events.push(`${who} ${event.resource}`)],
      });
    const controllerFor = (path: string) => {
      @Controller(path)
      class SomeController {
        @Get()
        @LockHandler({ key: `handler:${path}` })
        @DistributedLock(`method:${path}`)
        async get(): Promise<void> {}
      }
      return SomeController;
    };
    @Module({ imports: [observedBy('A')], controllers: [controllerFor('a')] })
    class A {}
    @Module({ imports: [observedBy('B')], controllers: [controllerFor('b')] })
    class B {}
    const { url } = await start({ imports: [A, B] });
    await fetch(`${url}/a`);
    await fetch(`${url}/b`);
    expect(events).toEqual(['A handler:a', 'A method:a', 'B handler:b', 'B method:b']);
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
      @DistributedLock({ key: 'x', lockService: 'billing' })
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
      @LockHandler({ key: 'x', lockService: 'biling' })
      build(): void {}
    }
    Controller()(ReportsController);
    const imports = [inMemory({ name: 'billing' })];
    const error = await rejection(Test.createTestingModule({ imports, controllers: [ReportsController] }).compile());
    expect(error.message).toContain('"RedisLockService:biling"');
  });
});
