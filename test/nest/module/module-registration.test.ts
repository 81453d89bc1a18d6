import {
  Controller,
  Get,
  type INestApplication,
  Injectable,
  Logger,
  Module,
  type ModuleMetadata,
} from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import {
  DistributedLock,
  DistributedSemaphore,
  getRedisLockToken,
  InjectRedisLock,
  InvalidLockOptionsError,
  key,
  LeaderOnly,
  type LockEvent,
  LockHandler,
  LockModuleMissingError,
  ReadLock,
  RedisLockModule,
  type RedisLockModuleOptions,
  type RedisLockOptionsFactory,
  RedisLockService,
  WriteLock,
} from 'nestjs-redis-lock';
import { SingletonCron, SingletonTimeout } from 'nestjs-redis-lock/schedule';
import type { LockTelemetry } from 'nestjs-redis-lock/telemetry';
import type { RegisteredGroup } from '../../../lib/kernel/events/observers.js';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, LogBook, useApps } from '../nest-apps.js';

describe('registering the module', () => {
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
      expect((error as InvalidLockOptionsError).option).toBe('service');
      return error.message;
    };

    it('which refuses to boot and names the places: the root module and one of its own modules', async () => {
      @Module({ imports: [RedisLockModule.forRoot({ ...memory, keyPrefix: 'orders' })], providers: [Orders] })
      class OrdersModule {}
      const message = await refusal([RedisLockModule.forRoot(memory), OrdersModule]);
      expect(message).toContain('RedisLockModule is registered 2 times as "default" in one application');
      expect([...message.matchAll(new RegExp(`${here}:\\d+:\\d+`, 'g'))]).toHaveLength(2);
      expect(new Set(message.match(new RegExp(`${here}:\\d+`, 'g'))).size).toBe(2);
      expect(message).toContain('its own service');
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

    it('is one service if several modules import the same dynamic module', async () => {
      const locks = inMemory({ global: false });
      @Module({ imports: [locks], providers: [Orders] })
      class A {}
      @Module({ imports: [locks] })
      class B {}
      const { app } = await start({ imports: [A, B, locks] });
      expect(app.get(Orders, { strict: false }).byType).toBe(app.get(RedisLockService, { strict: false }));
    });

    it('is two services in two applications of one process, even with one dynamic module', async () => {
      const locks = inMemory();
      const apps = [await start({ imports: [locks] }), await start({ imports: [locks] })];
      const [first, second] = apps.map(({ app }) => app.get(RedisLockService));
      expect(first).not.toBe(second);
    });

    it('is one service if a test overrides one of the modules', async () => {
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

  describe('an application without the module does not boot, and learns what to import', () => {
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
        'RedisLockService "billing": import RedisLockModule.forRoot({ service: "billing", ... })',
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

    it('for a handler that names an unregistered service', async () => {
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
});

describe('groups in an application', () => {
  @Injectable()
  class Orders {
    @DistributedLock((id: string) => key`order:${id}`)
    async pay(_id: string): Promise<void> {}

    @DistributedSemaphore({ key: 'exports', permits: 2, group: 'exports of orders' })
    async export(): Promise<void> {}

    @DistributedLock({ key: 'elsewhere', service: 'other' })
    async elsewhere(): Promise<void> {}

    @LeaderOnly('mailer')
    async mail(): Promise<void> {}
  }

  @Controller()
  class Reports {
    @SingletonCron('0 0 1 1 *')
    async nightly(): Promise<void> {}
  }

  const TWICE: LockTelemetry = { start: () => {} };

  const registered: RegisteredGroup[] = [];
  const events: LockEvent[] = [];
  const telemetry: LockTelemetry = {
    start(source) {
      source.onRegistered((each) => registered.push(each));
      source.observe((event) => events.push(event));
    },
  };
  let log: LogBook;
  let app: INestApplication | undefined;

  async function start(options: Parameters<typeof inMemory>[0] = {}) {
    log = new LogBook();
    Logger.overrideLogger(log);
    const imports = [inMemory({ telemetry, ...options }), inMemory({ service: 'other' }), ScheduleModule.forRoot()];
    const module = await Test.createTestingModule({ imports, providers: [Orders], controllers: [Reports] })
      .setLogger(log)
      .compile();
    app = module.createNestApplication();
    app.useLogger(log);
    await app.init();
    return app;
  }

  beforeEach(() => {
    registered.length = events.length = 0;
  });

  afterEach(async () => {
    await app?.close();
    app = undefined;
    Logger.overrideLogger(false);
  });

  it('are those of methods, jobs and leaderships, registered at boot, each with its lock service', async () => {
    const running = await start();
    expect(registered.toSorted((a, b) => (a.group < b.group ? -1 : 1))).toEqual([
      { kind: 'method', group: 'Orders.pay', mode: 'exclusive', name: 'Orders.pay' },
      { kind: 'job', group: 'Reports.nightly', mode: 'exclusive', name: 'Reports.nightly' },
      { kind: 'method', group: 'exports of orders', mode: 'semaphore', name: 'exports of orders' },
      { kind: 'leadership', group: 'leader:mailer', mode: 'exclusive', name: 'mailer' },
    ]);
    const orders = running.get(Orders);
    await orders.pay('7');
    await orders.export();
    await orders.elsewhere();
    await running.get(RedisLockService).using('stock:1', () => {});
    await running.get(RedisLockService).using('stock:1', { group: 'audit' }, () => {});
    const acquired = events.flatMap((event) => (event.type === 'acquired' ? [event] : []));
    expect(acquired.map(({ service, group }) => `${service} ${group}`)).toEqual(
      ['leader:mailer', 'Orders.pay', 'exports of orders', 'stock', 'audit'].map((group) => `default ${group}`),
    );
  });

  it('by a function that throws are _other, with one warning; a telemetry that throws too', async () => {
    const fail = (): never => {
      throw new Error('no table');
    };
    const running = await start({ group: fail, telemetry: [telemetry, { start: fail }] });
    for (let i = 0; i < 3; i++) await running.get(RedisLockService).using(`stock:${i}`, () => {});
    expect(events.flatMap((event) => (event.type === 'released' ? [event.group] : []))).toEqual(
      Array(3).fill('_other'),
    );
    expect(log.at('warn').filter((line) => line.includes('The module option'))).toEqual([
      expect.stringMatching(/^The module option telemetry threw/),
      expect.stringMatching(/^The module option group threw/),
    ]);
  });

  it.each([
    [{ group: 'order' as never }, 'group'],
    [{ telemetry: {} as never }, 'telemetry'],
    [{ telemetry: [null] as never }, 'telemetry'],
    [{ telemetry: [TWICE, TWICE] }, 'telemetry'],
    [{ warnAfterMs: 0 }, 'warnAfterMs'],
  ])('and options that cannot be right are refused: %p', (options, option) => {
    expect(() => inMemory(options)).toThrow(expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS', option }));
  });

  it.each(['', 'x'.repeat(101), '<b>', 'a\nb'])('nor is %p a group of a method', (group) => {
    expect(() => {
      class Wrong {
        @DistributedLock({ key: 'x', group })
        async run(): Promise<void> {}
      }
      return Wrong;
    }).toThrow(expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS', option: 'group' }));
  });
});

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
    [{ connection: 'memory:', retryCount: 5 }, 'retryCount', 'Known options: connection,'],
    [{ connection: 'memory:', prefix: 'shop' }, 'prefix', 'prefix is called keyPrefix here.'],
  ])('forRoot(%o)', (options, option, advice) => {
    const error = thrown(() => (RedisLockModule.forRoot as Loose)(options)) as InvalidLockOptionsError;
    expect(error.message).toMatch(`RedisLockModule.forRoot has no option "${option}". ${advice}`);
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
    ['keys', { keys: ['a', 'b'] }, "keys is called key here, and may be several names: key: ['a', 'b']."],
    ['resource', { resource: 'a' }, "resource is called key here, and may be several names: key: ['a', 'b']."],
    ['ttl', { key: 'a', ttl: 5 }, 'ttl is called leaseMs here.'],
    ['retryDelay', { key: 'a', retryDelay: 5 }, 'retryDelay is called retry here.'],
  ])('@DistributedLock with %s', (option, options, advice) => {
    const { message } = thrown(() => decorate(DistributedLock as Loose, [options]));
    expect(message).toBe(`The lock of Shop.pay has no option "${option}". ${advice}`);
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
      'Shop.pay is a property, and this decorator only works on methods. ' +
        'Write a method instead: async pay() { ... }.',
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
      'lock options must be an object, not 5000. Name the option: { waitMs: 5000 } or { leaseMs: 5000 }.',
    );
    expect((await rejection((service.acquire as Loose)('a', 5_000))).message).toBe(error.message);
    expect((await rejection((service.acquire as Loose)('a', { ttl: 1 }))).message).toBe(
      'lock options do not include "ttl". ttl is called leaseMs here.',
    );
  });

  it('new RedisLockService(), and the service as a provider', async () => {
    const error = thrown(() => new (RedisLockService as unknown as new (...args: unknown[]) => object)('redis://x'));
    expect(error).toBeInstanceOf(LockModuleMissingError);
    expect(error.message).toBe(
      'RedisLockService cannot be created with new or listed as a provider: RedisLockModule creates it. Import ' +
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
    expect(message).toContain('comes from a missing value in a template string');
    expect(message).toContain('The tag "key" shows which value is missing: key`order:${id}`.');
    expect(message).toContain("suspiciousNames: 'allow'");
    expect((await rejection(app.get(Orders).refund(id as never))).message).toMatch(
      /Value 1 of a key, after "order:", is/,
    );
    const lax = await start({ imports: [inMemory({ suspiciousNames: 'allow' })], providers: [Orders] });
    await lax.app.get(Orders).pay(id);
  });
});
