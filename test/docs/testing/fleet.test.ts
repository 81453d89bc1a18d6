import assert from 'node:assert/strict';
import { Test, type TestingModule } from '@nestjs/testing';
import { RedisLockService } from 'nestjs-redis-lock';
import { testLocks, withTestLocks } from 'nestjs-redis-lock/testing';
import { AppModule, Night, Orders } from './orders.js';

describe('two instances', () => {
  const start = () =>
    withTestLocks(Test.createTestingModule({ imports: [AppModule] }), {
      fleet: 'shop',
      clock: 'manual',
    }).compile();
  let apps: TestingModule[];

  beforeEach(async () => {
    apps = [await start(), await start()];
  });

  afterEach(async () => {
    for (const app of apps) await app.close();
  });

  it('exclude each other', async () => {
    const [here, there] = apps as [TestingModule, TestingModule];
    const lease = await here.get(RedisLockService).acquire('order:7');
    const paying = there.get(Orders).pay('7');
    await testLocks(here).advance(4_000); // on the clock of both
    assert.deepEqual(there.get(Orders).paid, []);
    await lease.release();
    assert.equal(await paying, 'paid 7');
  });

  it('have one leader, and another one when its term is lost', async () => {
    const [here, there] = apps as [TestingModule, TestingModule];
    for (const app of apps) await app.init(); // the candidates start here
    const locks = testLocks(here);
    await locks.idle(); // one is elected
    assert.equal(await here.get(Night).mail(), 'mailed');
    assert.equal(await there.get(Night).mail(), undefined);
    await locks.lose('leader:mailer');
    await locks.idle();
    assert.equal(await here.get(Night).mail(), undefined);
    assert.equal(await there.get(Night).mail(), 'mailed');
  });
});
