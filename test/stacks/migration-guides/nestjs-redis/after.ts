import { Injectable, Module } from '@nestjs/common';
import {
  DistributedLock,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';

@Injectable()
export class Stock {
  constructor(private readonly locks: RedisLockService) {}

  @DistributedLock('stock')
  async count(work: () => Promise<void>) {
    await work();
  }

  async move(from: string, to: string, work: () => Promise<void>) {
    await this.locks.using([`shelf:${from}`, `shelf:${to}`], work);
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({
      connection: process.env.REDIS_URL!,
      leaseMs: 3_000,
      waitMs: 5_000,
    }),
  ],
  providers: [Stock],
})
export class AppModule {}
