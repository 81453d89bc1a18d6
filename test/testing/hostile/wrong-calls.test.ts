import { runInNewContext } from 'node:vm';
import { Test } from '@nestjs/testing';
import { InvalidLockOptionsError, LockUnavailableError, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { TestKitError, testLocks, withTestLocks } from 'nestjs-redis-lock/testing';
import type { HoldElsewhereOptions } from '../../../lib/testing/hold-elsewhere.js';
import { rejection } from '../../support/expect/eventually.js';
import { useKitApps } from '../kit-apps.js';

const start = useKitApps();
const builder = () =>
  withTestLocks(Test.createTestingModule({ imports: [RedisLockModule.forRoot({ connection: 'redis://x.invalid' })] }));

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
    ['x', { mode: 'read', permits: 2 }, 'permits and total are of a semaphore, which has no other mode'],
    ['x', { instanceId: 'app-1' }, 'instanceId must be another one than "app-1"'],
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
    expect((await asking).message).toMatch(/^"x" is held by app-1/);
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
  const ofOtherCopy = Object.defineProperty(new Error(), Symbol.for('nestjs-redis-lock:TestKitError'), { value: true });
  expect(ofOtherCopy).toBeInstanceOf(TestKitError);
});
