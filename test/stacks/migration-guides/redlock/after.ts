import { Injectable, Module } from '@nestjs/common';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';

type Work = (signal: AbortSignal) => Promise<void>;

@Injectable()
export class Accounts {
  constructor(private readonly locks: RedisLockService) {}

  async transfer(from: string, to: string, work: Work) {
    await this.locks.using(
      [`account:${from}`, `account:${to}`],
      ({ signal }) => work(signal),
    );
  }

  /**
   * @returns whether this call built the report; another process may be
   * doing it
   */
  async tryReport(build: () => Promise<void>) {
    const { ran } = await this.locks.tryUsing('report', () => build());
    return ran;
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({
      connection: process.env.REDIS_URL!,
      leaseMs: 2_000,
      waitMs: 3_000,
    }),
  ],
  providers: [Accounts],
})
export class AppModule {}
