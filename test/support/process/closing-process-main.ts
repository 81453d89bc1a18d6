// The program of closing-process.ts: an application in a process of its own, which reports the handles left open after
// its close.
import 'reflect-metadata';
import { createHook } from 'node:async_hooks';
import { setTimeout } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { RedisLockModuleOptions } from '../../../lib/nest/module/module-options.js';
import { RedisLockModule } from '../../../lib/nest/module/redis-lock.module.js';
import { RedisLockService } from '../../../lib/nest/redis-lock.service.js';

const [options, serverPid] = process.argv.slice(2) as [string, string?];

@Module({
  imports: [
    RedisLockModule.forRoot({
      ...(JSON.parse(options) as RedisLockModuleOptions),
      attemptTimeoutMs: 200,
      waitMs: 0,
      shutdown: { drainMs: 0 },
    }),
  ],
})
class AppModule {}

const timers: (NodeJS.Timeout & { _destroyed?: boolean; _idleTimeout?: number })[] = [];
createHook({
  init: (_, type, __, timer) => void (type === 'Timeout' && timers.push(timer as NodeJS.Timeout)),
}).enable();

/** Sockets and timers. A background timer keeps no process alive, but tests of applications count it. */
function open(): string[] {
  const kept = process.getActiveResourcesInfo().filter((kind) => /^(TCPSocketWrap|TLSWrap|Timeout)$/.test(kind));
  const idle = timers.filter((timer) => !timer._destroyed && timer._idleTimeout! > 0 && !timer.hasRef());
  return [...kept, ...idle.map(({ _idleTimeout }) => `background timer of ${_idleTimeout} ms`)];
}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const locks = app.get(RedisLockService);
for (const name of ['a', 'b', 'c', 'd']) await locks.using(name, () => {}).catch(() => {});
await locks.acquire('left-behind', { leaseMs: 1_000 }).catch(() => {});
if (serverPid) {
  process.kill(Number(serverPid), 'SIGSTOP');
  // None is answered in time. With durability, each waits for the one before.
  for (let attempt = 0; attempt < 2; attempt++) await locks.using('a', () => {}).catch(() => {});
}
const began = performance.now();
await app.close();
const closedInMs = Math.round(performance.now() - began);
let left = open();
// On a busy machine, ioredis may still close a connection on which it asked a sentinel or a node who the primary is.
for (const until = began + 3_000; left.length > 0 && performance.now() < until; left = open()) await setTimeout(20);
process.stdout.write(JSON.stringify({ left, closedInMs }));
