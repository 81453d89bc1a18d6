import { Injectable, Module } from '@nestjs/common';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';

type Work = (signal: AbortSignal) => Promise<void>;

@Injectable()
export class Imports {
  constructor(private readonly locks: RedisLockService) {}

  async load(work: Work) {
    await this.locks.using(
      'imports',
      { leaseMs: 1_500, waitMs: 5_000 },
      ({ signal }) => work(signal),
    );
  }

  /**
   * @returns whether this call cleaned up; another process may be doing it
   */
  async tryClean(work: () => Promise<void>) {
    const { ran } = await this.locks.tryUsing('clean', () => work());
    return ran;
  }

  /** At most two downloads at once. A large one counts as two. */
  async download(isLarge: boolean, work: () => Promise<void>) {
    await this.locks
      .semaphore('downloads', { permits: 2 })
      .using({ count: isLarge ? 2 : 1 }, () => work());
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({ connection: process.env.REDIS_URL! }),
  ],
  providers: [Imports],
})
export class AppModule {}
