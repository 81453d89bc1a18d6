import { Injectable, Module } from '@nestjs/common';
import {
  DistributedLock,
  key,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';

@Injectable()
export class Orders {
  constructor(private readonly locks: RedisLockService) {}

  @DistributedLock((order: { id: string }) => key`order:${order.id}`)
  async pay(order: { id: string }, work: () => Promise<void>) {
    await work();
  }

  async ship(id: string, work: () => Promise<void>) {
    await this.locks.using(`parcel:${id}`, work);
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
  providers: [Orders],
})
export class AppModule {}
