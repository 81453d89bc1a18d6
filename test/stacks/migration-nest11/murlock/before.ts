import { Injectable, Module } from '@nestjs/common';
import { MurLock, MurLockModule, MurLockService } from 'murlock';

@Injectable()
export class Orders {
  constructor(private readonly murLock: MurLockService) {}

  @MurLock(1_000, 'order.id')
  async pay(order: { id: string }, work: () => Promise<void>) {
    await work();
  }

  async ship(id: string, work: () => Promise<void>) {
    await this.murLock.runWithLock(`parcel:${id}`, 1_000, 100, work);
  }
}

@Module({
  imports: [
    MurLockModule.forRoot({
      redisOptions: { url: process.env.REDIS_URL! },
      wait: 50, // then 100 ms, 150 ms, ...
      maxAttempts: 8,
      logLevel: 'none',
    }),
  ],
  providers: [Orders],
})
export class AppModule {}
