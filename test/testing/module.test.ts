import { Injectable, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  DistributedLock,
  getRedisLockToken,
  InjectRedisLock,
  InvalidLockOptionsError,
  type Lease,
  LeaseLostError,
  LockBusyError,
  LockUnavailableError,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { SingletonCron, SingletonInterval, SingletonJobs } from 'nestjs-redis-lock/schedule';
import {
  RedisLockTestingModule,
  TestKitError,
  testLocks,
  type TestLocksOptions,
  withTestLocks,
} from 'nestjs-redis-lock/testing';
import type { TestLossReason } from '../../lib/testing/lose.js';
import type { RedisLockTestingModuleOptions } from '../../lib/testing/redis-lock-testing.module.js';
import { LogBook } from '../nest/nest-apps.js';
import { rejection } from '../support/expect/eventually.js';
import { useKitApps } from './kit-apps.js';

const started: TestingModule[] = [];

describe('the testing module', () => {
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
});

describe('the control of fake locks', () => {
  const start = useKitApps();

  describe('lose', () => {
    it.each<TestLossReason>(['takenOver', 'notRenewed', 'expired', 'maxHold'])(
      'aborts the signal as %s, and the next waiter has the resource',
      async (reason) => {
        const { service, locks } = await start({ clock: 'manual' });
        const lease = await service.acquire('x');
        const other = locks.holdElsewhere('x', { waitMs: 60_000 });
        await locks.lose('x', reason);
        expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
        expect(lease.signal.reason).toMatchObject({ reason, resource: 'x' });
        expect(() => lease.assertHeld()).toThrow(LeaseLostError);
        expect((await other).fencingToken).toBeGreaterThan(lease.fencingToken);
        await lease.release();
        expect((await service.inspect('x')).holders).toHaveLength(1);
      },
    );

    it('refuses what the application does not hold, and says what it holds', async () => {
      const { service, locks } = await start();
      await service.acquire('mine', { watchdog: false });
      await locks.holdElsewhere('x');
      const error = await rejection<TestKitError>(locks.lose('x'));
      expect(error).toMatchObject({ name: 'TestKitError', code: 'unknownResource' });
      expect(error.message).toContain('It holds "mine". elsewhere holds "x".');
      expect(await rejection(locks.lose('mine', 'released' as never))).toBeInstanceOf(InvalidLockOptionsError);
      const wrong = await rejection(locks.lose(7 as never));
      expect(wrong.message).toContain('lose() needs a lease, or the name of a resource');
    });
  });

  describe('holdElsewhere of a leadership', () => {
    it('lets another instance lead, until it releases', async () => {
      const { service, locks } = await start({ clock: 'manual' });
      const other = await locks.holdElsewhere('leader:billing');
      const leadership = service.campaign('billing');
      await locks.advance(60_000);
      expect(leadership.isLeader()).toBe(false);
      await other.release();
      await locks.idle();
      expect(leadership.isLeader()).toBe(true);
      expect((await rejection(locks.holdElsewhere('leader:billing'))).name).toBe('LockBusyError');
    });
  });

  describe('failNext', () => {
    it('lets an acquisition fail with an error, once', async () => {
      const { service, locks } = await start();
      locks.failNext('acquire', new Error('WRONGTYPE'));
      const error = await rejection(service.acquire('x'));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toContain('WRONGTYPE');
      expect((await service.acquire('x')).isHeld()).toBe(true);
    });

    it('sends an acquisition again that was not executed', async () => {
      const { service, locks } = await start({ clock: 'manual' });
      locks.failNext('acquire', 'notExecuted');
      let lease: Lease | undefined;
      const acquiring = service.acquire('x').then((granted) => (lease = granted));
      await locks.advance(0);
      expect(lease).toBeUndefined();
      await locks.advance(50);
      expect(lease?.isHeld()).toBe(true);
      await acquiring;
    });

    it('lets a renewal fail, which the next one mends', async () => {
      const { service, locks } = await start({ clock: 'manual', leaseMs: 9_000 });
      const failed: string[] = [];
      service.observe((event) => void failed.push(event.type));
      const lease = await service.acquire('x');
      locks.failNext('renew', 'notExecuted');
      await locks.advance(30_000);
      expect(failed).toContain('renewalFailed');
      expect(lease.isHeld()).toBe(true);
    });

    it('lets only commands of a named resource fail, or of a named job', async () => {
      const { service, locks } = await start();
      locks.failNext('acquire', 'refused', 'order:7');
      await service.using('order:8', async () => {});
      expect(await rejection(service.acquire('order:7'))).toBeInstanceOf(LockUnavailableError);
      await service.using('order:7', async () => {});

      locks.failNext('claim', 'refused', 'nightly');
      const run = { tick: '1', overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock: {} } as const;
      expect(await service.runSingleton({ ...run, job: 'hourly' }, async () => 'ran')).toBe('ran');
      const refused = rejection(service.runSingleton({ ...run, job: 'nightly' }, async () => 'ran'));
      expect(await refused).toBeInstanceOf(LockUnavailableError);
      await locks.expectNothingHeld();
    });

    it('refuses other arguments', async () => {
      const { locks } = await start();
      expect(() => locks.failNext('acquire', 'refused', '')).toThrow('The resource given to failNext cannot be used');
      expect(() => locks.failNext('verify' as never)).toThrow(InvalidLockOptionsError);
      expect(() => locks.failNext('acquire', 'broken' as never)).toThrow("must be an Error, or one of 'notExecuted'");
    });
  });

  describe('redisDown', () => {
    it('refuses new calls when their wait ends, and loses leases when their time ends', async () => {
      const { service, locks } = await start({ clock: 'manual', leaseMs: 9_000 });
      const lease = await service.acquire('held');
      locks.redisDown();
      let error: unknown;
      const acquiring = rejection(service.acquire('x', { waitMs: 2_000 })).then((reason) => (error = reason));
      await locks.advance(1_900);
      expect(error).toBeUndefined();
      await locks.advance(200);
      expect(error).toBeInstanceOf(LockUnavailableError);
      await acquiring;
      expect((error as Error).message).toContain('a test has called redisDown()');
      expect(lease.isHeld()).toBe(true);
      await locks.advance(7_000);
      expect(lease.signal.reason).toMatchObject({ name: 'LeaseLostError', reason: 'notRenewed' });
      locks.redisUp();
      expect((await service.acquire('x', { waitMs: 0 })).isHeld()).toBe(true);
    });

    it('keeps a lease that is renewed after redisUp in time, and wakes those that wait', async () => {
      const { service, locks } = await start({ clock: 'manual', leaseMs: 9_000 });
      const lease = await service.acquire('held');
      const held = await locks.holdElsewhere('x');
      let isGranted = false;
      const options = { waitMs: 60_000, unavailableMs: 60_000 };
      const waiting = service.acquire('x', options).then((granted) => ((isGranted = true), granted));
      await locks.advance(1_000);
      locks.redisDown();
      const releasing = rejection(held.release());
      await locks.advance(3_000);
      expect(isGranted).toBe(false);
      locks.redisUp();
      await locks.advance(60_000);
      expect(lease.isHeld()).toBe(true);
      expect(isGranted).toBe(true);
      await waiting;
      await releasing;
    });
  });

  describe('idle', () => {
    it('resolves when a release in the background has ended', async () => {
      const { service, locks } = await start({ backgroundRelease: true });
      await service.using('x', async () => {});
      await locks.idle();
      expect((await service.inspect('x')).mode).toBeNull();
    });

    it('does not wait for a call that waits for a holder', async () => {
      const { shop, locks } = await start();
      const held = await locks.holdElsewhere('order:7');
      const paying = shop.pay('7');
      await locks.idle();
      expect(shop.paid).toEqual([]);
      await held.release();
      await paying;
      expect(shop.paid).toEqual(['7']);
    });
  });
});

describe('singleton jobs with a manual clock', () => {
  const ran: string[] = [];

  @Injectable()
  class Reports {
    @SingletonCron('0 0 3 * * *', { name: 'nightly', timeZone: 'UTC' })
    async nightly(): Promise<void> {
      ran.push('nightly');
    }

    @SingletonInterval('poll', 60_000)
    async poll(): Promise<void> {
      ran.push('poll');
    }
  }
  beforeEach(() => {
    ran.length = 0;
  });
  afterEach(async () => {
    await Promise.all(started.splice(0).map((module) => module.close()));
  });

  const HOUR_MS = 3_600_000;
  /** A date at which no timer of the machine fires the job. */
  const BEGIN = new Date('2031-05-05T03:00:00.200Z');

  async function start(): Promise<TestingModule> {
    const locks = RedisLockTestingModule.forRoot({ fleet: 'cron', clock: 'manual', startsAt: BEGIN });
    const imports = [ScheduleModule.forRoot(), locks];
    const module = await Test.createTestingModule({ imports, providers: [Reports] }).compile();
    started.push(module);
    return module.init();
  }

  it('claim the tick that is due by it, on one instance of the fleet', async () => {
    const modules = [await start(), await start()];
    const [locks] = modules.map((module) => testLocks(module));
    const fire = (): Promise<unknown> => Promise.all(modules.map((module) => module.get(Reports).nightly()));
    await fire();
    expect(ran).toEqual(['nightly']);
    await locks!.advance(24 * HOUR_MS);
    await fire();
    expect(ran).toEqual(['nightly', 'nightly']);
    const history = await modules[0]!.get(SingletonJobs).history('nightly');
    expect(history.map(({ tick }) => tick)).toEqual(['2031-05-06T03:00:00.000Z', '2031-05-05T03:00:00.000Z']);
  });

  it('run an interval again when it is over by it', async () => {
    const module = await start();
    const fire = (): Promise<void> => module.get(Reports).poll();
    await fire();
    await fire();
    expect(ran).toEqual(['poll']);
    await testLocks(module).advance(60_000);
    await fire();
    expect(ran).toEqual(['poll', 'poll']);
  });
});

describe('log', () => {
  const start = useKitApps();

  it('tells who held what, in which order, and for how long', async () => {
    const { service, shop, locks } = await start({ clock: 'manual' });
    const held = await locks.holdElsewhere('order:7');
    const paying = shop.pay('7');
    await locks.advance(120);
    await held.release();
    await paying;
    const lease = await service.acquire('x', { mode: 'read' });
    await locks.advance(10);
    await locks.lose(lease);
    const entries = locks.log.entries.map(({ type, instanceId: instance, resource, mode }) => [
      type,
      instance,
      resource,
      mode,
    ]);
    expect(entries).toEqual([
      ['acquired', 'elsewhere', 'order:7', 'exclusive'],
      ['waiting', 'app-1', 'order:7', 'exclusive'],
      ['released', 'elsewhere', 'order:7', 'exclusive'],
      ['acquired', 'app-1', 'order:7', 'exclusive'],
      ['released', 'app-1', 'order:7', 'exclusive'],
      ['acquired', 'app-1', 'x', 'read'],
      ['lost', 'app-1', 'x', 'read'],
    ]);
    expect(locks.log.of('x')).toMatchObject([
      { atMs: 120, token: lease.fencingToken, waitedMs: 0 },
      { atMs: 130, token: lease.fencingToken, heldMs: 10, reason: 'takenOver' },
    ]);
    expect(locks.log.toString().split('\n').slice(1, 4)).toEqual([
      '      0 ms  app-1 waits for "order:7" (held by elsewhere)',
      '    120 ms  elsewhere released "order:7" (held 120 ms)',
      expect.stringMatching(/^ {4}120 ms {2}app-1 acquired "order:7" \(token \d+, waited 120 ms(, at .*)?\)$/),
    ]);
  });

  it('knows what is held, and where it was acquired', async () => {
    const { service, locks } = await start();
    const lease = await service.acquire('x');
    await service.using('y', async () => expect(locks.log.held.map(({ resource }) => resource)).toEqual(['x', 'y']));
    expect(locks.log.held).toMatchObject([{ resource: 'x', token: lease.fencingToken }]);
    expect(locks.log.held[0]!.from).toContain('module.test');
    locks.log.clear();
    expect(locks.log.entries).toEqual([]);
    await lease.release();
    expect(locks.log.held).toEqual([]);
    expect(locks.log.entries).toMatchObject([{ type: 'released', from: expect.stringContaining('module.test') }]);
  });
});
