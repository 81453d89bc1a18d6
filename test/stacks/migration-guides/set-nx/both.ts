import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { Redis } from 'ioredis';
import { DistributedLock, key, RedisLockModule } from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';

@Injectable()
export class Invoices implements OnModuleDestroy {
  private readonly redis = new Redis(process.env.REDIS_URL!);

  @SingletonCron('0 */10 * * * *', { name: 'remind' })
  async remind(): Promise<void> {
    // The key isn't deleted. It outlasts the differences between timers and
    // clocks, and expires before the next tick.
    if (!(await this.setOldKey('lock:remind', 60_000))) return;
    await this.send();
  }

  async send() {}

  @DistributedLock((id: string) => key`invoice:${id}`)
  async pay(id: string, work: () => Promise<void>) {
    while (!(await this.setOldKey(`lock:invoice:${id}`, 1_000))) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    try {
      await work();
    } finally {
      await this.redis.del(`lock:invoice:${id}`);
    }
  }

  private async setOldKey(name: string, ms: number) {
    return (await this.redis.set(name, '1', 'PX', ms, 'NX')) === 'OK';
  }

  async onModuleDestroy() {
    await this.redis.quit();
  }
}

@Module({
  imports: [
    ScheduleModule.forRoot(),
    RedisLockModule.forRoot({
      connection: process.env.REDIS_URL!,
      leaseMs: 1_000,
    }),
  ],
  providers: [Invoices],
})
export class AppModule {}
