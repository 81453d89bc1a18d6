import 'reflect-metadata';
import assert = require('node:assert/strict');
import { test } from 'node:test';
import lock = require('nestjs-redis-lock');

test('require gives everything but the cron decorators', () => {
  for (const name of ['RedisLockModule', 'RedisLockService', 'DistributedLock', 'InjectRedisLock', 'LockBusyError']) {
    assert.equal(typeof lock[name as keyof typeof lock], 'function', name);
  }
});

const NEEDED: Record<string, RegExp> = {
  schedule: /@nestjs\/schedule/,
  telemetry: /@opentelemetry\/api/,
  'prom-client': /Cannot find module 'prom-client'/,
};

for (const [entry, needed] of Object.entries(NEEDED)) {
  test(`require of the entry ${entry} says what to install`, () => {
    assert.throws(() => require(`nestjs-redis-lock/${entry}`), { code: 'MODULE_NOT_FOUND', message: needed });
  });
}
