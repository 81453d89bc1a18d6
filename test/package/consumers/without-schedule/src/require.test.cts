import 'reflect-metadata';
import assert = require('node:assert/strict');
import { test } from 'node:test';
import lock = require('nestjs-redis-lock');

test('require gives everything but the cron decorators', () => {
  for (const name of ['RedisLockModule', 'RedisLockService', 'DistributedLock', 'InjectRedisLock', 'LockBusyError']) {
    assert.equal(typeof lock[name as keyof typeof lock], 'function', name);
  }
});

test('require of the cron decorators says what to install', () => {
  assert.throws(() => require('nestjs-redis-lock/schedule'), /@nestjs\/schedule/);
});
