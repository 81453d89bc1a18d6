import { Test } from '@nestjs/testing';
import assert from 'node:assert/strict';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { withTestLocks } from 'nestjs-redis-lock/testing';

it('takes locks in one order', async () => {
  const imports = [
    RedisLockModule.forRoot({ connection: 'redis://localhost:6379' }),
  ];
  const module = await withTestLocks(
    Test.createTestingModule({ imports }),
    { throwOnLockOrder: true },
  ).compile();
  const locks = module.get(RedisLockService);
  await locks.using('order:7', () => locks.using('stock:1', () => {}));
  await assert.rejects(
    locks.using('stock:2', () => locks.using('order:8', () => {})),
    { name: 'TestKitError', code: 'lockOrder' },
  );
  await module.close();
});
