import 'reflect-metadata';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as lock from 'nestjs-redis-lock';

test('import gives everything but the cron decorators', () => {
  for (const name of ['RedisLockModule', 'RedisLockService', 'DistributedLock', 'InjectRedisLock', 'LockBusyError']) {
    assert.equal(typeof lock[name as keyof typeof lock], 'function', name);
  }
});

// Not written in place: the compiler would look for the types of @nestjs/schedule too.
const cronEntry: string = 'nestjs-redis-lock/schedule';

test('import of the cron decorators says what to install', async () => {
  await assert.rejects(import(cronEntry), /@nestjs\/schedule/);
});
