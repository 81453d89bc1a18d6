import { jest } from '@jest/globals';

describe('a manual clock where the kit is loaded after fake timers were installed', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('works all the same, also when the application closes', async () => {
    jest.useFakeTimers();
    // Only here, after the timers.
    const { Test } = await import('@nestjs/testing');
    const { RedisLockTestingModule, testLocks } = await import('nestjs-redis-lock/testing');
    const { RedisLockService } = await import('nestjs-redis-lock');
    const imports = [RedisLockTestingModule.forRoot({ clock: 'manual', leaseMs: 9_000 })];
    const module = await Test.createTestingModule({ imports }).compile();
    const [service, locks] = [module.get(RedisLockService), testLocks(module)];
    const held = await locks.holdElsewhere('x');
    const acquiring = service.acquire('x', { waitMs: 120_000 });
    await locks.advance(60_000);
    await held.release();
    const lease = await acquiring;
    await locks.idle();
    expect(lease.isHeld()).toBe(true);
    await lease.release();
    await module.close();
  });
});
