import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { Redis } from 'ioredis';

@Injectable()
export class Invoices implements OnModuleDestroy {
  private readonly redis = new Redis(process.env.REDIS_URL!);

  @Cron('0 */10 * * * *')
  async remind() {
    if (
      (await this.redis.set('lock:remind', '1', 'PX', 1_000, 'NX')) !== 'OK'
    )
      return;
    try {
      await this.send();
    } finally {
      await this.redis.del('lock:remind');
    }
  }

  async send() {}

  async pay(id: string, work: () => Promise<void>) {
    while (
      (await this.redis.set(
        `lock:invoice:${id}`,
        '1',
        'PX',
        1_000,
        'NX',
      )) !== 'OK'
    ) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    try {
      await work();
    } finally {
      await this.redis.del(`lock:invoice:${id}`);
    }
  }

  async onModuleDestroy() {
    await this.redis.quit();
  }
}

@Module({ imports: [ScheduleModule.forRoot()], providers: [Invoices] })
export class AppModule {}
