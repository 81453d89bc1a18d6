import assert from 'node:assert/strict';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockUnavailableError, RedisLockService } from 'nestjs-redis-lock';
import {
  type TestLocks,
  testLocks,
  withTestLocks,
} from 'nestjs-redis-lock/testing';
import { AppModule, Orders } from './orders.js';

class Ledger {
  async book(_order: string): Promise<void> {}
}

describe('orders, checked', () => {
  let app: TestingModule;
  let locks: TestLocks;
  let orders: Orders;

  beforeEach(async () => {
    app = await withTestLocks(
      Test.createTestingModule({ imports: [AppModule] }),
    ).compile();
    locks = testLocks(app);
    orders = app.get(Orders);
  });

  afterEach(() => app.close());

  it('leaves the order unlocked if Redis rejects the lock', async () => {
    locks.failNext(
      'acquire',
      new Error('OOM command not allowed'),
      'order:7',
    ); // for this order only
    await assert.rejects(orders.pay('7'), LockUnavailableError);
    await locks.expectNotHeld('order:7');
    assert.equal(await orders.pay('7'), 'paid 7');
  });

  it('books one at a time', async () => {
    const ledger = new Ledger(); // what the lock protects
    const service = app.get(RedisLockService);
    const book = () => service.using('order:7', () => ledger.book('7'));
    const runs = await locks.expectExclusive(book, {
      times: 3,
      touching: ledger,
    });
    assert.equal(
      runs.filter(({ status }) => status === 'fulfilled').length,
      3,
    );
  });

  it('logs what happened', async () => {
    await orders.pay('7');
    const entries = locks.log
      .of('order:7')
      .map(({ instanceId, type }) => `${instanceId} ${type}`);
    assert.deepEqual(entries, ['app-1 acquired', 'app-1 released']);
    assert.match(
      locks.log.toString(),
      /app-1 acquired "order:7" \(token \d+/,
    );
  });
});
