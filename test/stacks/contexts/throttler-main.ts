// The program of throttler.slow.test.ts: @nestjs/throttler is CommonJS and requires Nest, which Jest cannot do with
// Nest 12.
import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SkipThrottle, Throttle } from '@nestjs/throttler';
import { LockHandler, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { ShopModule } from './throttled-shop.js';

@Controller()
class Handlers {
  @Throttle({ default: { ttl: 60_000, limit: 1 } })
  @LockHandler('above')
  @Get('above')
  async above(): Promise<string> {
    return 'ran';
  }

  @Get('below')
  @LockHandler('below')
  @Throttle({ default: { ttl: 60_000, limit: 1 } })
  async below(): Promise<string> {
    return 'ran';
  }

  @SkipThrottle()
  @LockHandler({ key: 'often', waitMs: 10_000 })
  @Get('often')
  async often(): Promise<string> {
    return 'ran';
  }
}

@Module({
  imports: [ShopModule, RedisLockModule.forRoot({ connection: 'memory:' })],
  controllers: [Handlers],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'], forceCloseConnections: true });
const locked: string[] = [];
app.get(RedisLockService).observe((event) => event.type === 'acquired' && locked.push(event.resource));
await app.listen(0, '127.0.0.1');
const { port } = app.getHttpServer().address() as AddressInfo;

/** The status of each of several requests, and what they have locked. */
async function send(method: string, path: string, times: number): Promise<object> {
  locked.length = 0;
  const request = async (): Promise<number> => (await fetch(`http://127.0.0.1:${port}/${path}`, { method })).status;
  const statuses = await Promise.all(Array.from({ length: times }, request));
  return { statuses: statuses.toSorted((a, b) => a - b), locked: [...locked] };
}

const found = {
  method: await send('POST', 'orders/7/pay', 4),
  above: await send('GET', 'above', 3),
  below: await send('GET', 'below', 3),
  often: await send('GET', 'often', 3),
};
await app.close();
process.stdout.write(JSON.stringify(found));
