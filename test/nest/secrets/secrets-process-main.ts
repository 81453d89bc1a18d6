// What secrets-process.test.ts starts: an application that cannot get at its Redis, and a caller who handles no error.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { RedisLockModule } from '../../../lib/nest/module/redis-lock.module.js';
import { RedisLockService } from '../../../lib/nest/redis-lock.service.js';

const [connection, text] = process.argv.slice(2).map((argument) => JSON.parse(argument) as never) as [never, never];

// As Node prints it by itself, and goes on.
process.on('unhandledRejection', (reason) => console.error('unhandled', reason));
process.on('warning', (warning) => console.error(warning, Object.getOwnPropertyDescriptors(warning)));

const module = RedisLockModule.forRoot({ connection, waitMs: 300, attemptTimeoutMs: 100, shutdown: { drainMs: 0 } });
const app = await NestFactory.createApplicationContext(module);
const locks = app.get(RedisLockService);
locks.observe((event) => console.log(event));
void locks.acquire('a');
void locks.list();
void locks.latch('latch', 1).countDown();
void locks.adopt(text);
void locks.adopt('x', text);
locks.campaign('leadership');
await new Promise((resolve) => setTimeout(resolve, 700));
console.error(locks, module);
await app.close();
