import { Injectable, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  DistributedLock,
  getRedisLockToken,
  InvalidLockOptionsError,
  InjectRedisLock,
  LockBusyError,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import {
  RedisLockTestingModule,
  TestKitError,
  testLocks,
  type TestLocksOptions,
  withTestLocks,
} from 'nestjs-redis-lock/testing';
import type { RedisLockTestingModuleOptions } from '../../lib/testing/redis-lock-testing.module.js';
import { LogBook } from '../nest/nest-apps.js';
import { rejection } from '../support/expect/eventually.js';

const started: TestingModule[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((module) => module.close()));
});

async function keep(starting: Promise<TestingModule>): Promise<TestingModule> {
  const module = await starting;
  started.push(module);
  return module.init();
}

@Injectable()
class Shop {
  readonly paid: string[] = [];

  @DistributedLock({ key: (order: string) => `order:${order}`, waitMs: 10_000 })
  async pay(order: string): Promise<void> {
    this.paid.push(order);
  }
}

function shop(options?: RedisLockTestingModuleOptions): Promise<TestingModule> {
  const imports = [RedisLockTestingModule.forRoot(options)];
  return keep(Test.createTestingModule({ imports, providers: [Shop] }).compile());
}

@Injectable()
class Billing {
  constructor(@InjectRedisLock('billing') readonly locks: RedisLockService) {}
}

const connection = 'redis://nowhere.invalid:1';

@Module({
  imports: [
    RedisLockModule.forRoot({ connection, leaseMs: 5_000 }),
    RedisLockModule.forRootAsync({ service: 'billing', useFactory: () => ({ connection }) }),
  ],
  providers: [Shop, Billing],
})
class AppModule {}

function app(options?: TestLocksOptions): Promise<TestingModule> {
  return keep(withTestLocks(Test.createTestingModule({ imports: [AppModule] }), options).compile());
}

describe('RedisLockTestingModule', () => {
  it('lets another application hold a lock, and the decorated method wait for it', async () => {
    const module = await shop();
    const locks = testLocks(module);
    const held = await locks.holdElsewhere('order:7');
    const paying = module.get(Shop).pay('7');
    expect(await rejection(module.get(RedisLockService).acquire('order:7', { waitMs: 0 }))).toBeInstanceOf(
      LockBusyError,
    );
    expect(module.get(Shop).paid).toEqual([]);
    await held.release();
    await paying;
    expect(module.get(Shop).paid).toEqual(['7']);
  });

  it('has one world for two applications of a fleet', async () => {
    const [a, b] = [await shop({ fleet: 'two' }), await shop({ fleet: 'two' })];
    expect(testLocks(a).fleet).toBe(testLocks(b).fleet);
    expect(testLocks(await shop()).fleet).not.toBe(testLocks(a).fleet);
    const lease = await a.get(RedisLockService).acquire('x');
    expect(await rejection(b.get(RedisLockService).acquire('x', { waitMs: 0 }))).toBeInstanceOf(LockBusyError);
    await lease.release();
  });

  it.each([[['b', 'a', 'c']], [['c', 'b', 'a']], [['a', 'c', 'b', 'a', 'b']]])(
    'grants a lock to the applications of a fleet in the order in which they ask: %p',
    async (asked) => {
      const options = { fleet: 'queue', clock: 'manual', strictOrder: true } as const;
      const apps: Record<string, TestingModule> = {};
      for (const name of ['a', 'b', 'c']) apps[name] = await shop(options);
      const locks = testLocks(apps['a']!);
      const held = await locks.holdElsewhere('x');
      const granted: string[] = [];
      const waits: Promise<void>[] = [];
      for (const name of asked) {
        const service = apps[name]!.get(RedisLockService);
        waits.push(service.using('x', async () => void granted.push(name)));
        await locks.idle(); // it is in the queue
      }
      expect(granted).toEqual([]);
      await held.release();
      await Promise.all(waits);
      expect(granted).toEqual(asked);
    },
  );

  it('with a manual clock, lets a wait end only when the test says so', async () => {
    const module = await shop({ clock: 'manual' });
    const locks = testLocks(module);
    await locks.holdElsewhere('order:7');
    let ended = false;
    const paying = rejection(module.get(Shop).pay('7')).finally(() => (ended = true));
    await locks.advance(9_999);
    expect(ended).toBe(false);
    await locks.advance(1);
    expect(ended).toBe(true);
    expect((await paying).name).toBe('LockTimeoutError');
  });

  it('closes with a manual clock, though a lease was not released', async () => {
    const module = await shop({ clock: 'manual' });
    const lease = await module.get(RedisLockService).acquire('x');
    await module.close();
    expect(lease.signal.aborted).toBe(true);
  });

  describe('throwOnLockOrder', () => {
    const both = (module: TestingModule, outer: string, inner: string) => {
      const locks = module.get(RedisLockService);
      return locks.using(outer, () => locks.using(inner, () => 'done'));
    };

    it('fails the call that takes locks in an order that makes a cycle with an earlier one', async () => {
      const module = await shop({ throwOnLockOrder: true });
      expect(await both(module, 'order:7', 'stock:1')).toBe('done');
      const error = await rejection(both(module, 'stock:2', 'order:8'));
      expect(error).toMatchObject({ name: 'TestKitError', code: 'lockOrder' });
      expect(error.message).toMatch(/A call that held "order:7", at .*module\.test\.ts:\d+.*wanted "order:8"/);
      await testLocks(module).expectNothingHeld();
    });

    it('counts a call for several resources, too', async () => {
      const module = await shop({ throwOnLockOrder: true });
      await module.get(RedisLockService).using(['stock:1', 'order:7'], () => {});
      expect(await rejection(both(module, 'stock:2', 'order:8'))).toMatchObject({ code: 'lockOrder' });
    });

    it('is off by default: the log tells it', async () => {
      const module = await shop({});
      await both(module, 'order:7', 'stock:1');
      expect(await both(module, 'stock:2', 'order:8')).toBe('done');
      expect(module.get(RedisLockService).lockOrder()).toHaveLength(2);
    });
  });

  it('forgets a fleet with its last application', async () => {
    const first = await shop({ fleet: 'gone', clock: 'manual' });
    await first.get(RedisLockService).acquire('x', { watchdog: false });
    const other = rejection(shop({ fleet: 'gone' }));
    expect(await other).toMatchObject({ name: 'TestKitError', code: 'otherClock' });
    await first.close();
    const second = await shop({ fleet: 'gone' });
    await second.get(RedisLockService).acquire('x', { waitMs: 0 });
  });
});

describe('bad input and a wrong place', () => {
  it.each([
    [{ clock: 'fake' }, "clock must be one of 'real', 'manual'"],
    [{ fleet: '' }, 'fleet must be 1 to 100 characters'],
    [{ throwOnLockOrder: 'yes' }, 'throwOnLockOrder must be true or false'],
    [{ startsAt: new Date(NaN) }, 'startsAt must be a valid Date'],
    [{ fleets: 'x' }, 'Did you mean fleet?'],
  ])('%j is refused at once', (options, message) => {
    expect(() => withTestLocks(Test.createTestingModule({}), options as never)).toThrow(InvalidLockOptionsError);
    expect(() => withTestLocks(Test.createTestingModule({}), options as never)).toThrow(message);
  });

  it.each([{ connection: 'redis://localhost' }, { quorum: [] }, { durability: {} }])(
    'RedisLockTestingModule refuses %p, which is of Redis',
    (options) => {
      const [option] = Object.keys(options);
      const refused = (): unknown => RedisLockTestingModule.forRoot(options as never);
      expect(refused).toThrow(InvalidLockOptionsError);
      expect(refused).toThrow(`RedisLockTestingModule.forRoot takes no ${option}: it keeps the locks in memory.`);
    },
  );

  it('warns at the start where NODE_ENV is production', async () => {
    const log = new LogBook();
    const before = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    try {
      await keep(
        Test.createTestingModule({ imports: [RedisLockTestingModule.forRoot()] })
          .setLogger(log)
          .compile(),
      );
    } finally {
      process.env['NODE_ENV'] = before;
    }
    expect(log.at('warn')).toEqual([
      expect.stringContaining('nestjs-redis-lock/testing keeps the locks in this process'),
    ]);
  });
});

describe('withTestLocks', () => {
  it('puts every lock service of an application on the kit, and keeps its options', async () => {
    const module = await app({ clock: 'manual' });
    const [locks, billing] = [testLocks(module), testLocks(module, 'billing')];
    expect(module.get(getRedisLockToken())).toBe(locks.service);
    expect(module.get(Billing).locks).toBe(billing.service);
    expect(locks.fleet).toBe(billing.fleet);
    await billing.holdElsewhere('x');
    const lease = await locks.service.acquire('x', { waitMs: 0, watchdog: false });
    await locks.advance(4_500);
    expect(lease.signal.aborted).toBe(false);
    await locks.advance(500);
    expect(lease.signal.aborted).toBe(true);
  });

  it('is a world of its own for each application', async () => {
    const [a, b] = [await app(), await app()];
    await testLocks(a).holdElsewhere('x');
    expect((await testLocks(b).service.acquire('x', { waitMs: 0 })).isHeld()).toBe(true);
  });
});

describe('testLocks', () => {
  it.each([
    ["'memory:'", RedisLockModule.forRoot({ connection: 'memory:' }), "in 'memory:'"],
    ['no module', class Nothing {}, 'has no lock service called "default"'],
  ])('refuses an application on %s, and says what to do', async (_, imported, message) => {
    const module = await keep(Test.createTestingModule({ imports: [imported] }).compile());
    const refused = (): unknown => testLocks(module);
    expect(refused).toThrow(TestKitError);
    expect(refused).toThrow(message);
    expect(refused).toThrow('RedisLockTestingModule.forRoot()');
  });

  it('refuses to move a real clock', async () => {
    const error = await rejection<TestKitError>(testLocks(await shop()).advance(1));
    expect(error).toMatchObject({ name: 'TestKitError', code: 'realClock' });
    expect(error.message).toContain("clock: 'manual'");
  });
});
