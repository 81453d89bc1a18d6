import 'reflect-metadata';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as lock from 'nestjs-redis-lock';

test('import gives everything but the cron decorators', () => {
  for (const name of ['RedisLockModule', 'RedisLockService', 'DistributedLock', 'InjectRedisLock', 'LockBusyError']) {
    assert.equal(typeof lock[name as keyof typeof lock], 'function', name);
  }
});

// Not written in place: the compiler would look for the types of these packages too.
const NEEDED: Record<string, RegExp> = {
  schedule: /@nestjs\/schedule/,
  telemetry: /@opentelemetry\/api/,
  'prom-client': /Cannot find package 'prom-client'/,
};

for (const [entry, needed] of Object.entries(NEEDED)) {
  test(`import of the entry ${entry} says what to install`, async () => {
    await assert.rejects(import(`nestjs-redis-lock/${entry}`), { code: 'ERR_MODULE_NOT_FOUND', message: needed });
  });
}
