import 'reflect-metadata';
import assert = require('node:assert/strict');
import { test } from 'node:test';
import lock = require('nestjs-redis-lock');

test('require gives everything but the cron decorators', () => {
  for (const name of ['RedisLockModule', 'RedisLockService', 'DistributedLock', 'InjectRedisLock', 'LockBusyError']) {
    assert.equal(typeof lock[name as keyof typeof lock], 'function', name);
  }
});

test('an application that keeps its locks in memory loads no ioredis', async () => {
  const { NestFactory } = await import('@nestjs/core');
  const module = lock.RedisLockModule.forRoot({ connection: 'memory:' });
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  assert.equal(await app.get(lock.RedisLockService).using('stock', () => 'sold'), 'sold');
  await app.close();
  const loaded = Object.keys(require.cache);
  assert.ok(
    loaded.some((file) => /nestjs-redis-lock.+memory\.js$/.test(file)),
    'what is loaded is seen here',
  );
  assert.deepEqual(
    loaded.filter((file) => /[\\/](?:ioredis|redis\.js)(?:[\\/]|$)/.test(file)),
    [],
  );
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
