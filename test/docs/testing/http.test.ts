import assert from 'node:assert/strict';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { testLocks, withTestLocks } from 'nestjs-redis-lock/testing';
import { AppModule } from './orders.js';

describe('orders, over HTTP', () => {
  let app: INestApplication;

  beforeEach(async () => {
    const testing = await withTestLocks(
      Test.createTestingModule({ imports: [AppModule] }),
    ).compile();
    app = testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
  });

  afterEach(() => app.close());

  it('answers 423 while another instance has the order', async () => {
    const other = await testLocks(app).holdElsewhere('order:7');
    const url = `${await app.getUrl()}/orders/7/cancel`;
    const busy = await fetch(url, { method: 'POST' });
    assert.equal(busy.status, 423);
    await other.release();
    assert.equal((await fetch(url, { method: 'POST' })).status, 201);
  });
});
