// The application of every consumer: what a user of the package writes, in one file.
import { Injectable, Module } from '@nestjs/common';
import type { CronOptions } from '@nestjs/schedule';
import { DistributedLock, RedisLockModule, RedisLockService, type Lease } from 'nestjs-redis-lock';
import {
  Cron,
  CronExpression,
  Interval,
  ScheduleModule,
  SingletonCron,
  type SingletonRun,
  Timeout,
} from 'nestjs-redis-lock/schedule';

const HOUR_MS = 3_600_000;
/** The options of the installed scheduler. */
const LATER: CronOptions = { name: 'at a date', timeZone: 'UTC', waitForCompletion: true };
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

  // By one import, and so named after the method.
  @Cron(CronExpression.EVERY_SECOND)
  async tick({ tick }: SingletonRun): Promise<void> {
    Shop.ticks.push(tick);
  }

  // As the installed scheduler has them, and not due while this runs.
  @Cron(new Date(Date.now() + HOUR_MS), LATER)
  later() {}

  @Interval('hourly interval', HOUR_MS)
  async interval() {}

  @Timeout('in an hour', HOUR_MS)
  timeout() {}

  @SingletonCron(HOURLY, { name: 'hourly', timeZone: 'UTC', onMissed: 'runOnce' })
  async hourly({ missed }: SingletonRun): Promise<void> {
    if (missed) Shop.missed.push(missed.count);
  }
}

@Module({
  imports: [ScheduleModule.forRoot(), RedisLockModule.forRoot({ connection: process.env.REDIS_URL! })],
  providers: [Shop],
})
export class AppModule {}
