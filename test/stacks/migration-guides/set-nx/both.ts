import { Injectable, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DistributedLock, key, RedisLockModule } from 'nestjs-redis-lock';
import { setNx } from 'nestjs-redis-lock/migration';
import { SingletonCron } from 'nestjs-redis-lock/schedule';

const client = process.env.REDIS_URL!;

@Injectable()
export class Invoices {
  // Longer than timers and clocks may differ, and shorter than the pause
  // between two ticks.
  @SingletonCron('0 */10 * * * *', {
    name: 'remind',
    alsoLock: setNx({ client, key: 'lock:remind', keepMs: 60_000 }),
  })
  async remind(): Promise<void> {
    await this.send();
  }

  async send() {}

  @DistributedLock({
    key: (id: string) => key`invoice:${id}`,
    alsoLock: setNx({ client, key: (resource) => `lock:${resource}` }),
  })
  async pay(id: string, work: () => Promise<void>) {
    await work();
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
