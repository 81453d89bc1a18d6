// The application of every consumer: what a user of the package writes, in one file.
import { Injectable, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DistributedLock, RedisLockModule, RedisLockService, type Lease } from 'nestjs-redis-lock';
import { SingletonCron, type SingletonRun } from 'nestjs-redis-lock/schedule';

/** Due in half an hour, and so not while this runs. */
const HOURLY = `0 ${(new Date().getUTCMinutes() + 30) % 60} * * * *`;

@Injectable()
export class Shop {
  static paying = 0;
  static mostPayingAtOnce = 0;
  static ticks: string[] = [];
  static missed: number[] = [];

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
  async tick({ tick }: SingletonRun): Promise<void> {
    Shop.ticks.push(tick);
  }

  @SingletonCron(HOURLY, { name: 'hourly', timeZone: 'UTC', onMissed: 'runOnce' })
  async hourly({ missed }: SingletonRun): Promise<void> {
    if (missed) Shop.missed.push(missed.count);
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
