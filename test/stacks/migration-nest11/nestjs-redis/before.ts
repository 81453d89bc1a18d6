import { Injectable, Module } from '@nestjs/common';
import { Redlock, RedlockModule, RedlockService } from '@nestjs-redis/lock';
import { createClient, type RedisClientType } from 'redis';

@Injectable()
export class Stock {
  constructor(private readonly redlock: RedlockService) {}

  @Redlock('stock', 1_000)
  async count(work: () => Promise<void>) {
    await work();
  }

  async move(from: string, to: string, work: () => Promise<void>) {
    await this.redlock.withLock(
      [`shelf:${from}`, `shelf:${to}`],
      3_000,
      work,
      { extensionThresholdMs: 2_800 },
    );
  }
}

@Module({
  imports: [
    RedlockModule.forRootAsync({
      useFactory: async () => {
        const client: RedisClientType = createClient({
          url: process.env.REDIS_URL!,
        });
        await client.connect();
        return {
          clients: [client],
          redlockConfig: { retryDelayMs: 200, maxRetryAttempts: 25 },
        };
      },
    }),
  ],
  providers: [Stock],
})
export class AppModule {}
