import { Injectable, Module } from '@nestjs/common';
import { Redis } from 'ioredis';
import { MurLockModule, MurLockService } from 'murlock';
import { OldLocks } from './orders.js';

@Injectable()
export class MurlockLocks extends OldLocks {
  private readonly redis = new Redis(process.env.REDIS_URL!);

  constructor(private readonly murlock: MurLockService) {
    super();
  }

  async using(name: string, work: () => Promise<void>) {
    // The lock isn't renewed, so it has to last longer than the work.
    await this.murlock.runWithLock(name, 5_000, 20, work);
  }

  async take(name: string, ms: number) {
    // The key that murlock uses. murlock itself would delete it after the
    // work.
    return (await this.redis.set(name, 'new', 'PX', ms, 'NX')) === 'OK';
  }
}

@Module({
  imports: [
    MurLockModule.forRoot({
      redisOptions: { url: process.env.REDIS_URL! },
      wait: 20,
      maxAttempts: 500,
      ignoreUnlockFail: true,
      logLevel: 'error',
    }),
  ],
  providers: [{ provide: OldLocks, useClass: MurlockLocks }],
  exports: [OldLocks],
})
export class OldLocksModule {}
