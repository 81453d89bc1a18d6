/* eslint-disable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-return */
// Mistakes of a first day: prints the name of each, and its error.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock, key, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';

const forRoot = RedisLockModule.forRoot as (options: any) => any;
const Service = RedisLockService as unknown as new (...args: unknown[]) => object;

/** Applies a decorator to a method, as JavaScript does: without the compiler. */
function decorate(decorator: any, ...args: unknown[]): void {
  class Shop {
    pay(): void {}
  }
  decorator(...args)(Shop.prototype, 'pay', Object.getOwnPropertyDescriptor(Shop.prototype, 'pay'));
}

@Injectable()
class Orders {
  @DistributedLock((id: unknown) => `order:${String(id)}`)
  async pay(_id: unknown): Promise<void> {}

  @DistributedLock((id: string) => key`order:${id}`)
  async refund(_id: string): Promise<void> {}
}

@Module({ imports: [RedisLockModule.forRoot({ connection: 'memory:' })], providers: [Orders] })
class Shop {}

@Module({
  imports: [RedisLockModule.forRoot({ connection: 'memory:', suspiciousNames: 'allow' })],
  providers: [Orders],
})
class Lax {}

@Module({ imports: [RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:1', waitMs: 120_000 })] })
class Away {}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

async function main(): Promise<void> {
  const open = (module: any): Promise<any> => NestFactory.createApplicationContext(module, { logger: false });
  const [shop, lax, away] = await Promise.all([open(Shop), open(Lax), open(Away)]);
  const locks: any = shop.get(RedisLockService);
  const [orders, laxOrders] = [shop.get(Orders), lax.get(Orders)];
  const nested = (outer: string, inner: string): Promise<unknown> =>
    locks.using(outer, async () => {
      await settle();
      await locks.using(inner, { waitMs: 500 }, () => {});
    });
  const traps: Record<string, () => unknown> = {
    host: () => forRoot({ host: 'redis', port: 6379 }),
    url: () => forRoot({ url: 'redis://:hunter2@redis' }),
    client: () => forRoot({ client: {} }),
    ttl: () => forRoot({ connection: 'memory:', ttl: 5_000 }),
    'no key': () => decorate(DistributedLock, { waitMs: 1 }),
    keys: () => decorate(DistributedLock, { keys: ['a'] }),
    'key and options': () => decorate(DistributedLock, 'a', { waitMs: 1 }),
    'name of a job': () => decorate(SingletonCron, '0 1 * * *', 'nightly'),
    'arrow function': () => (DistributedLock('a') as any)({}, 'pay', undefined),
    'one key twice': () => {
      class Twice {
        @DistributedLock('a')
        @DistributedLock('a')
        async pay(): Promise<void> {}
      }
      return Twice;
    },
    'new service': () => new Service('redis://redis'),
    'a number': () => locks.using('a', 5_000, () => {}),
    undefined: () => orders.pay(undefined),
    NaN: () => orders.pay(Number.NaN),
    null: () => orders.pay(null),
    object: () => orders.pay({}),
    'tag key': () => orders.refund(undefined),
    'allowed names': () => laxOrders.pay(undefined),
    deadlock: () => Promise.all([nested('account:x', 'account:y'), nested('account:y', 'account:x')]),
    'Redis away': async () => {
      const from = performance.now();
      const error: Error = await away
        .get(RedisLockService)
        .acquire('stock')
        .catch((thrown: Error) => thrown);
      throw Object.assign(error, { message: `${(performance.now() - from) / 1_000 < 60} ${error.message}` });
    },
  };
  for (const [name, trap] of Object.entries(traps)) {
    try {
      await trap();
      console.log(`${name} -> nothing`);
    } catch (error) {
      console.log(`${name} -> ${(error as Error).name}: ${(error as Error).message}`);
    }
  }
  await Promise.all([shop.close(), lax.close(), away.close()]);
}

void main();
