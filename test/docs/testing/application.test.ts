import assert from 'node:assert/strict';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  LeaseLostError,
  LockTimeoutError,
  LockUnavailableError,
  RedisLockService,
} from 'nestjs-redis-lock';
import {
  type TestLocks,
  testLocks,
  withTestLocks,
} from 'nestjs-redis-lock/testing';
import { AppModule, Orders } from './orders.js';

describe('orders, in the application', () => {
  let app: TestingModule;
  let locks: TestLocks;
  let orders: Orders;

  beforeEach(async () => {
    app = await withTestLocks(
      Test.createTestingModule({ imports: [AppModule] }),
      { clock: 'manual' },
    ).compile();
    locks = testLocks(app);
    orders = app.get(Orders);
  });

  afterEach(async () => {
    // fails if a lease was forgotten, and names the line that acquired it
    await locks.expectNothingHeld();
    await app.close();
  });

  it('pays under the lock of the order', async () => {
    await locks.expectHeldDuring('order:7', () => orders.pay('7'));
    assert.deepEqual(orders.paid, ['7']);
  });

  it('waits while another instance has the order', async () => {
    const other = await locks.holdElsewhere('order:7');
    const paying = orders.pay('7');
    await locks.advance(4_000);
    await other.release();
    assert.equal(await paying, 'paid 7');
  });

  it('gives up after 5 seconds', async () => {
    const other = await locks.holdElsewhere('order:7');
    const paying = assert.rejects(orders.pay('7'), LockTimeoutError);
    await locks.advance(5_000);
    await paying;
    await other.release();
  });

  it('shows a place in line', async () => {
    const other = await locks.holdElsewhere('order:7');
    const paying = orders.pay('7'); // the first in line
    const places: number[] = [];
    const next = app
      .get(RedisLockService)
      .using(
        'order:7',
        { onWait: ({ ahead }) => places.push(ahead + 1) },
        () => 'shipped',
      );
    await locks.advance(50); // shorter waits aren't reported
    assert.deepEqual(places, [2]);
    await other.release();
    await paying;
    assert.equal(await next, 'shipped');
  });

  it('stops paying when its lease is lost', async () => {
    const other = await locks.holdElsewhere('order:8');
    const paying = assert.rejects(
      orders.payAll(['7', '8', '9']),
      LeaseLostError,
    );
    await locks.idle(); // 7 is paid, and 8 waits
    await locks.lose('all-orders');
    await other.release();
    await paying;
    assert.deepEqual(orders.paid, ['7', '8']);
  });

  it('fails while Redis is down', async () => {
    locks.redisDown();
    const paying = assert.rejects(orders.pay('7'), LockUnavailableError);
    await locks.advance(5_000);
    await paying;
    locks.redisUp();
    assert.equal(await orders.pay('7'), 'paid 7');
  });
});
