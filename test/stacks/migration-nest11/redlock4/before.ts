import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { Redis } from 'ioredis';
import Redlock from 'redlock';

@Injectable()
export class Accounts implements OnModuleDestroy {
  private readonly redlock = new Redlock([new Redis(process.env.REDIS_URL!)], { retryCount: 20, retryDelay: 100 });

  constructor() {
    this.redlock.on('clientError', (error) => console.error(error));
  }

  async transfer(from: string, to: string, work: () => Promise<void>) {
    const lock = await this.redlock.lock([`account:${from}`, `account:${to}`], 1_000);
    try {
      await lock.extend(1_000);
      await work();
    } finally {
      await lock.unlock();
    }
  }

  async onModuleDestroy() {
    await this.redlock.quit();
  }
}

@Module({ providers: [Accounts] })
export class AppModule {}
