import assert from 'node:assert/strict';
import { bindLocks, passThroughLocks } from 'nestjs-redis-lock/testing';
import { Orders } from './orders.js';

describe('orders, without Nest', () => {
  const locks = passThroughLocks();

  it('pays', async () => {
    const orders = bindLocks(new Orders(locks), locks);
    assert.equal(await orders.pay('7'), 'paid 7');
    await orders.payAll(['8', '9']);
    assert.deepEqual(orders.paid, ['7', '8', '9']);
  });

  it('saves as if under a lock', async () => {
    const orders = new Orders(locks);
    await orders.save('7'); // assertLocked() is satisfied
    assert.deepEqual(orders.paid, ['7']);
  });
});
