import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { Redis } from 'ioredis';
import { MultiSemaphore, Mutex, Semaphore } from 'redis-semaphore';

type Work = (signal: AbortSignal) => Promise<void>;

@Injectable()
export class Imports implements OnModuleDestroy {
  private readonly redis = new Redis(process.env.REDIS_URL!);

  async load(work: Work) {
    const lost = new AbortController();
    const mutex = new Mutex(this.redis, 'imports', {
      lockTimeout: 1_500,
      refreshInterval: 300,
      acquireTimeout: 5_000,
      retryInterval: 20,
      onLockLost: (error) => lost.abort(error),
    });
    await mutex.acquire();
    try {
      await work(lost.signal);
    } finally {
      await mutex.release();
    }
  }

  /** @returns whether this call cleaned up; another process may be doing it */
  async tryClean(work: () => Promise<void>) {
    const mutex = new Mutex(this.redis, 'clean', {
      acquireAttemptsLimit: 1,
    });
    if (!(await mutex.tryAcquire())) return false;
    try {
      await work();
    } finally {
      await mutex.release();
    }
    return true;
  }

  /** Two at a time. A large one counts as two. */
  async download(isLarge: boolean, work: () => Promise<void>) {
    const semaphore = isLarge
      ? new MultiSemaphore(this.redis, 'downloads', 2, 2)
      : new Semaphore(this.redis, 'downloads', 2);
    await semaphore.acquire();
    try {
      await work();
    } finally {
      await semaphore.release();
    }
  }

  async onModuleDestroy() {
    await this.redis.quit();
  }
}

@Module({ providers: [Imports] })
export class AppModule {}
