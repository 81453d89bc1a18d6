// The program of secrets-process.test.ts: an application that cannot reach its Redis, and a caller that handles no
// error.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { RedisLockModule } from '../../../lib/nest/module/redis-lock.module.js';
import { RedisLockService } from '../../../lib/nest/redis-lock.service.js';

const [connection, reason] = process.argv.slice(2).map((argument) => JSON.parse(argument) as never) as [never, never];

/** `true` once the reason why Redis is unusable, or its reply, was printed. */
let isTold = false;
for (const stream of [process.stdout, process.stderr]) {
  const write = stream.write.bind(stream) as (chunk: unknown, ...rest: unknown[]) => boolean;
  stream.write = (chunk: unknown, ...rest: unknown[]) => {
    isTold ||= new RegExp(reason).test(String(chunk));
    return write(chunk, ...rest);
  };
}

// Prints it like Node, but continues.
process.on('unhandledRejection', (reason) => console.error('unhandled', reason));
process.on('warning', (warning) => console.error(warning, Object.getOwnPropertyDescriptors(warning)));

const module = RedisLockModule.forRoot({ connection, waitMs: 300, attemptTimeoutMs: 100, shutdown: { drainMs: 0 } });
const app = await NestFactory.createApplicationContext(module);
const locks = app.get(RedisLockService);
locks.observe((event) => console.log(event));
void locks.acquire('a');
void locks.list();
locks.campaign('leadership');
const before = Date.now() + 20_000;
do {
  await new Promise((resolve) => setTimeout(resolve, 700));
  void locks.list();
} while (!isTold && Date.now() < before);
console.error(locks, module);
await app.close();
