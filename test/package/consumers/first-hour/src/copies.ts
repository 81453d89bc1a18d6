// The application and a library of another format have two copies of the lock module in one process. What has nothing to do with
// Nest exists once.
import assert from 'node:assert/strict';
import { NestFactory } from '@nestjs/core';
import { LockBusyError, LockError, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { SingletonJobs } from 'nestjs-redis-lock/schedule';
import { LibraryModule, LibraryService, locks as other } from 'shop-library';
import { AppModule } from './app.module.js';

class ShopBusyError extends LockBusyError {}

async function checkCopies(): Promise<void> {
  assert.notEqual(RedisLockModule, other.RedisLockModule, 'the library has a copy of its own');
  assert.equal(LockBusyError, other.LockBusyError, 'a class of errors exists once');
  const app = await NestFactory.create({ module: class Shop {}, imports: [AppModule, LibraryModule] });
  await app.init();
  const library = app.get(LibraryService);
  const locks = app.get(RedisLockService);
  assert.equal(library.byClass, locks);
  assert.equal(library.byToken, locks);
  const jobs = app.get(SingletonJobs);
  assert.equal(library.jobs, jobs);

  const lease = await locks.acquire('library');
  assert.equal(await library.orSkip(), undefined);
  const busy = await library.orThrow().catch((error: unknown) => error);
  for (const kind of [LockError, LockBusyError, other.LockError, other.LockBusyError]) assert.ok(busy instanceof kind);
  assert.ok(!(busy instanceof ShopBusyError));
  await lease.release();
  assert.equal(await library.orThrow(), 'done');

  const deadline = Date.now() + 60_000;
  while (library.ticks.length < 2 || library.led === 0) {
    assert.ok(Date.now() < deadline, `in 60 s: ${library.ticks.length} ticks, led ${library.led} times`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await app.close();
}

async function checkSecondRegistration(): Promise<void> {
  const imports = [
    RedisLockModule.forRoot({ connection: 'memory:' }),
    other.RedisLockModule.forRoot({ connection: 'memory:' }),
  ];
  const boot = NestFactory.create({ module: class Twice {}, imports }, { abortOnError: false, logger: false });
  await assert.rejects(boot, /registered 2 times as "default"/);
}

void checkCopies()
  .then(checkSecondRegistration)
  .then(() => console.log('both copies work'));
