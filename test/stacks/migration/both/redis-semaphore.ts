import { Injectable, Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';
import { OldLocks } from './orders.js';

@Injectable()
export class RedisSemaphoreLocks extends OldLocks {
  private readonly redis = new Redis(process.env.REDIS_URL!);
  private readonly logger = new Logger(RedisSemaphoreLocks.name);

  async using(name: string, work: () => Promise<void>) {
    const mutex = new Mutex(this.redis, name, {
      lockTimeout: 5_000,
      refreshInterval: 1_500,
      acquireTimeout: 10_000,
      // Without this function, a lost lock crashes the process.
      onLockLost: (error) => this.logger.error(error),
    });
    await mutex.acquire();
    try {
      await work();
    } finally {
      await mutex.release();
    }
  }

  async take(name: string, ms: number) {
    const mutex = new Mutex(this.redis, name, {
      lockTimeout: ms,
      refreshInterval: 0,
      acquireAttemptsLimit: 1,
    });
    return mutex.tryAcquire();
  }
}
