import { runInNewContext } from 'node:vm';
import { Test } from '@nestjs/testing';
import {
  InvalidLockOptionsError,
  type Lease,
  LockUnavailableError,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { passThroughLocks, TestKitError, testLocks, withTestLocks } from 'nestjs-redis-lock/testing';
import type { HoldElsewhereOptions } from '../../../lib/testing/hold-elsewhere.js';
import { rejection } from '../../support/expect/eventually.js';
import { useKitApps } from '../kit-apps.js';

describe('passThroughLocks', () => {
  const start = useKitApps();

  type Use = (locks: RedisLockService) => unknown;
  const held = async (locks: RedisLockService, use: (lease: Lease) => unknown, options = {}): Promise<unknown> => {
    const lease = await locks.acquire('x', options);
    try {
      return await use(lease);
    } finally {
      await lease.release();
    }
  };

  const USES: Record<string, Use> = {
    lease: (locks) => locks.acquire('x'),
    'several resources': (locks) => locks.acquire(['b', 'a']),
    'lease that it tries': (locks) => locks.tryAcquire('x'),
    'work that throws': (locks) => locks.using('x', () => Promise.reject(new Error('no'))),
    'work under a lease': (locks) => locks.using('x', (lease) => lease),
    'work that it tries': (locks) => locks.tryUsing('x', async () => 7),
    'sync work': (locks) => locks.using('x', () => 7),
    current: (locks) => locks.using('x', () => locks.current('x')),
    'no current': (locks) => locks.current('x') === undefined,
    'other current': (locks) => locks.using('x', () => locks.current('y') === undefined),
    inspect: (locks) => held(locks, () => locks.inspect('x')),
    'inspect a reader': (locks) => held(locks, () => locks.inspect('x'), { mode: 'read' }),
    'inspect a label': (locks) => held(locks, () => locks.inspect('x'), { label: 'because' }),
    'inspect a free one': (locks) => locks.inspect('x'),
    'inspect a semaphore': async (locks) => {
      const pool = locks.semaphore('pool', { permits: 3 });
      const lease = await pool.acquire({ count: 2 });
      return [lease, await locks.inspect('pool')];
    },
    list: (locks) => held(locks, () => locks.list()),
    'list of a prefix': (locks) => held(locks, () => locks.list({ prefix: 'y' })),
    health: (locks) => locks.health(),
    explain: async (locks) => Object.keys(await locks.explain('x')),
    contention: (locks) => locks.contention(),
    extend: (locks) => held(locks, (lease) => lease.extend(60_000), { watchdog: false }),
    'extend a renewed one': (locks) => held(locks, (lease) => lease.extend(60_000)),
    verify: (locks) => held(locks, (lease) => lease.verify?.()),
    'release twice': (locks) => held(locks, (lease) => lease.release()),
    'use after release': async (locks) => {
      const lease = await locks.acquire('x');
      await lease.release();
      return [lease.isHeld(), lease.signal.aborted, lease.assertHeld()];
    },
    'extend after release': async (locks) => {
      const lease = await locks.acquire('x');
      await lease.release();
      return lease.extend(1_000);
    },
    'reentry of an exclusive lock': (locks) => locks.using('x', () => locks.using('x', { waitMs: 50 }, async () => 7)),
    reentry: (locks) =>
      locks.using('x', { mode: 'reentrant' }, () => locks.using('x', { mode: 'reentrant' }, async () => 7)),
    downgrade: (locks) => held(locks, (lease) => lease.downgrade(), { mode: 'write' }),
    'downgrade of an exclusive lock': (locks) => held(locks, (lease) => lease.downgrade()),
    'force release': (locks) => held(locks, (lease) => locks.forceRelease('x', { fencingToken: lease.fencingToken })),
    'force release of none': (locks) => locks.forceRelease('x', { fencingToken: 7 }),
    'wait until free': (locks) => locks.waitUntilFree('x'),
    leadership: (locks) => locks.leadership('mailer') === undefined,
    campaign: (locks) => Object.keys(locks.campaign('mailer')).sort(),
    'campaign twice': (locks) => [locks.campaign('mailer'), locks.campaign('mailer')].length,
    'single run': (locks) =>
      locks.runSingleton(
        { job: 'a', tick: '1', overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock: {} },
        async () => 7,
      ),
    'aborted signal': (locks) => locks.acquire('x', { signal: AbortSignal.abort() }),
    'leader name': (locks) => locks.acquire('leader:x'),
    'too long a name': (locks) => locks.acquire('x'.repeat(600)),
    'no work': (locks) => locks.using('x', undefined as never),
    'unknown option': (locks) => locks.acquire('x', { waitMS: 1 } as never),
    'watchdog with a wrong lease': (locks) => locks.acquire('x', { leaseMs: 0 }),
    'wrong semaphore': (locks) => locks.semaphore('x', { permits: 0 }),
    'too many permits': (locks) => locks.semaphore('x', { permits: 1 }).acquire({ count: 2 }),
  };

  /** The names and kinds of what a value has, without what differs from run to run. */
  function shapeOf(value: unknown): unknown {
    if (value instanceof Error) return `${value.name}: ${value.message.replaceAll(/\d+/g, '#')}`;
    if (Array.isArray(value)) return value.map(shapeOf);
    if (value === null || typeof value !== 'object') return value === null ? null : typeof value;
    const entries = Object.entries(value as Record<string, unknown>);
    if (Object.getPrototypeOf(value) === Object.prototype) {
      return Object.fromEntries(entries.map(([name, each]) => [name, shapeOf(each)]));
    }
    return { class: value.constructor.name, names: entries.map(([name]) => name).sort() };
  }

  async function outcome(use: Use, locks: RedisLockService): Promise<unknown> {
    try {
      return { resolved: shapeOf(await use(locks)) };
    } catch (error) {
      return { threw: shapeOf(error) };
    }
  }

  it.each(Object.entries(USES))('has the same shape as the real service: %s', async (_, use) => {
    const { service } = await start();
    expect(await outcome(use, passThroughLocks())).toEqual(await outcome(use, service));
  });
});

describe('a wrong call', () => {
  const start = useKitApps();
  const builder = () =>
    withTestLocks(
      Test.createTestingModule({ imports: [RedisLockModule.forRoot({ connection: 'redis://x.invalid' })] }),
    );

  describe('testLocks', () => {
    it('says that an await is missing', async () => {
      const compiling = builder().compile();
      const refused = (): unknown => testLocks(compiling as never);
      expect(refused).toThrow(TestKitError);
      expect(refused).toThrow('testLocks() needs the application, not an object (Promise). Await compile() first.');
      expect(() => testLocks(builder() as never)).toThrow('(TestingModuleBuilder). Await compile() first.');
      await (await compiling).close();
    });

    it.each([undefined, null, 'app', new Map().set('get', 1).size])('refuses %p', (given) => {
      expect(() => testLocks(given as never)).toThrow('Pass what compile() or NestFactory.create() resolves to.');
    });

    it('says what a wrong name is', async () => {
      const { module } = await start();
      const refused = (): unknown => testLocks(module, 'biling');
      expect(refused).toThrow(TestKitError);
      expect(refused).toThrow('no lock service called "biling". The second argument of testLocks() is the name');
    });

    it('refuses a service that a test has overridden', async () => {
      const overridden = builder().overrideProvider(RedisLockService);
      for (const value of [null, {}]) {
        const module = await overridden.useValue(value).compile();
        expect(() => testLocks(module)).toThrow(TestKitError);
      }
    });
  });

  describe('withTestLocks', () => {
    it.each([undefined, {}, Promise.resolve()])('refuses %p', (given) => {
      const refused = (): unknown => withTestLocks(given as never);
      expect(refused).toThrow(InvalidLockOptionsError);
      expect(refused).toThrow('Call compile() on what it returns, not before.');
    });
  });

  describe('holdElsewhere', () => {
    it.each<[string, HoldElsewhereOptions, string]>([
      ['x', { mode: 'read', permits: 2 }, 'holdElsewhere() holds either a lock (mode) or a semaphore (permits, total)'],
      ['x', { instanceId: 'app-1' }, 'instanceId of holdElsewhere() must not be "app-1"'],
      [['a', 'b'] as never, {}, 'The resource given to holdElsewhere cannot be used: an array of 2 is not a string'],
      ['', {}, 'The resource given to holdElsewhere cannot be used: the name is empty'],
      ['leader:mailer', { mode: 'read' }, 'Leave out mode, permits and total'],
      ['cron:nightly', { permits: 2 }, 'Leave out mode, permits and total'],
    ])('refuses %p with %p', async (resource, options, message) => {
      const { service, locks } = await start();
      expect((await rejection(locks.holdElsewhere(resource, options))).message).toContain(message);
      expect(await service.list()).toEqual([]);
    });

    it('is busy where the application holds the resource, also when its work asks', async () => {
      const { service, locks } = await start({ clock: 'manual' });
      const asking = service.using('x', { mode: 'reentrant' }, () =>
        rejection(locks.holdElsewhere('x', { mode: 'reentrant' })),
      );
      expect((await asking).message).toMatch(/^"x" has been held by app-1/);
    });

    it('can be released twice, and after it was lost', async () => {
      const { locks } = await start({ clock: 'manual' });
      const held = await locks.holdElsewhere('x', { leaseMs: 1_000 });
      await held.release();
      await held.release();
      const lost = await locks.holdElsewhere('x', { leaseMs: 1_000 });
      locks.redisDown();
      await locks.advance(2_000);
      expect(lost.signal.aborted).toBe(true);
      locks.redisUp();
      await lost.release();
      await locks.expectNothingHeld();
    });

    it('is refused once the application has closed', async () => {
      const { module, locks } = await start();
      await module.close();
      expect(await rejection(locks.holdElsewhere('x'))).toMatchObject({ name: 'TestKitError', code: 'closed' });
    });
  });

  describe('failNext', () => {
    it('takes an error of another realm', async () => {
      const { service, locks } = await start();
      locks.failNext('acquire', runInNewContext('new Error("ECONNRESET")') as Error);
      const error = await rejection(service.acquire('x'));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toContain('ECONNRESET');
    });
  });

  it('a TestKitError of the other copy of the package is recognized', () => {
    const ofOtherCopy = Object.defineProperty(new Error(), Symbol.for('nestjs-redis-lock:TestKitError'), {
      value: true,
    });
    expect(ofOtherCopy).toBeInstanceOf(TestKitError);
  });
});

describe('idle', () => {
  const start = useKitApps();

  it('waits for a release in the background that is sent again', async () => {
    const { service, locks } = await start({ backgroundRelease: true });
    locks.failNext('release', 'notExecuted');
    await service.using('x', async () => {});
    await locks.idle();
    expect((await service.inspect('x')).mode).toBeNull();
  });

  it('waits for a release that Redis missed, once Redis is back', async () => {
    const { service, locks } = await start({ backgroundRelease: true });
    await service.using('x', async () => locks.redisDown());
    await locks.idle();
    locks.redisUp();
    await locks.idle();
    expect((await service.inspect('x')).mode).toBeNull();
  });

  it('does not wait for a lease that is held, nor for a lost one that is not released', async () => {
    const { service, locks } = await start();
    await service.acquire('held', { watchdog: false });
    const lease = await service.acquire('lost');
    await locks.lose(lease);
    await locks.idle();
    expect((await service.inspect('held')).holders).toHaveLength(1);
    await lease.release();
  });
});
