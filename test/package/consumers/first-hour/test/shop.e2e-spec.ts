import { Test, type TestingModule } from '@nestjs/testing';
import { LockBusyError, RedisLockService } from 'nestjs-redis-lock';
import { AppModule } from './../src/app.module.js';
import { Orders } from './../src/orders.js';

describe('Shop (e2e)', () => {
  let app: TestingModule;
  let locks: RedisLockService;

  beforeAll(async () => {
    app = await Test.createTestingModule({ imports: [AppModule] }).compile();
    await app.init();
    locks = app.get(RedisLockService);
  });

  afterAll(() => app.close());

  it('has one payment at a time', async () => {
    const orders = app.get(Orders);
    await Promise.all([orders.pay('7'), orders.pay('7'), orders.pay('7')]);
    expect(orders.mostPayingAtOnce).toBe(1);
  });

  it('skips, and fails at once, where the order is held', async () => {
    const lease = await locks.acquire('order:8');
    expect(await app.get(Orders).remind('8')).toBe(undefined);
    const busy = await app
      .get(Orders)
      .ship('8')
      .catch((error: unknown) => error);
    expect(busy).toBeInstanceOf(LockBusyError);
    await lease.release();
    expect(await app.get(Orders).remind('8')).toBe('reminded 8');
    expect(await app.get(Orders).ship('8')).toBeGreaterThan(lease.fencingToken);
  });

  // In memory, such a lease does not keep close() waiting: test runners give up after 5 s.
  if (process.env.REDIS_URL === 'memory:') {
    it('may end with a lease that was not released', async () => {
      expect((await locks.acquire('never')).isHeld()).toBe(true);
    });
  }
});
