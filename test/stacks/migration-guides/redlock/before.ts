import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { Redis } from 'ioredis';
import Redlock, { ExecutionError } from 'redlock';

type Work = (signal: AbortSignal) => Promise<void>;

@Injectable()
export class Accounts implements OnModuleDestroy {
  private readonly redlock = new Redlock(
    [new Redis(process.env.REDIS_URL!)],
    {
      driftFactor: 0.01,
      retryCount: 30,
      retryDelay: 100,
      retryJitter: 50,
      automaticExtensionThreshold: 1_000,
    },
  );

  async transfer(from: string, to: string, work: Work) {
    await this.redlock.using(
      [`account:${from}`, `account:${to}`],
      2_000,
      (signal) => work(signal),
    );
  }

  /**
   * @returns whether this call built the report; another process may be
   * doing it
   */
  async tryReport(build: () => Promise<void>) {
    let lock;
    try {
      lock = await this.redlock.acquire(['report'], 2_000, {
        retryCount: 0,
      });
    } catch (error) {
      if (error instanceof ExecutionError) return false;
      throw error;
    }
    try {
      lock = await lock.extend(5_000); // the report takes longer
      await build();
    } finally {
      await lock.release();
    }
    return true;
  }

  async onModuleDestroy() {
    await this.redlock.quit();
  }
}

@Module({ providers: [Accounts] })
export class AppModule {}
