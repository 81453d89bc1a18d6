// The application of every consumer: what a user of the package writes, in one file.
import { Injectable, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DistributedLock, RedisLockModule, RedisLockService, type Lease } from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';

@Injectable()
export class Shop {
  static paying = 0;
  static mostPayingAtOnce = 0;
  static ticks: number[] = [];

  constructor(private readonly locks: RedisLockService) {}

  @DistributedLock((orderId: string) => `order:${orderId}`)
  async pay(orderId: string): Promise<string> {
    Shop.mostPayingAtOnce = Math.max(Shop.mostPayingAtOnce, ++Shop.paying);
    await new Promise((resolve) => setTimeout(resolve, 20));
    Shop.paying--;
    return `paid ${orderId}`;
  }

  // Shows that the types arrived, and are not `any`.
  // @ts-expect-error the key function takes what the method takes
  @DistributedLock((orderId: number) => `order:${orderId}`)
  async refund(orderId: string): Promise<string> {
    return `refunded ${orderId}`;
  }

  reserve(product: string): Promise<Lease> {
    return this.locks.acquire(`product:${product}`, { waitMs: 0 });
  }

  @SingletonCron('* * * * * *', { name: 'tick' })
  async tick(): Promise<void> {
    Shop.ticks.push(Math.round(Date.now() / 1000));
  }
}

@Module({
  imports: [
    ScheduleModule.forRoot(),
    RedisLockModule.forRoot({ connection: process.env.REDIS_URL!, keyPrefix: process.env.KEY_PREFIX! }),
  ],
  providers: [Shop],
})
export class AppModule {}
