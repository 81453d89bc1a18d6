import assert from 'node:assert/strict';
import { jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { LockTimeoutError } from 'nestjs-redis-lock';
import { testLocks, withTestLocks } from 'nestjs-redis-lock/testing';
import { AppModule, Orders } from './orders.js';

describe('orders, with fake timers', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('time out by the manual clock', async () => {
    const app = await withTestLocks(
      Test.createTestingModule({ imports: [AppModule] }),
      { clock: 'manual' },
    ).compile();
    const locks = testLocks(app);
    const other = await locks.holdElsewhere('order:7');
    const paying = assert.rejects(
      app.get(Orders).pay('7'),
      LockTimeoutError,
    );
    // moves the clock of the locks, not the runner's timers
    await locks.advance(5_000);
    await paying;
    await other.release();
    await app.close();
  });
});
