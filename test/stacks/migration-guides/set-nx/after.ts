import { Injectable, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DistributedLock, key, RedisLockModule } from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';

@Injectable()
export class Invoices {
  @SingletonCron('0 */10 * * * *', { name: 'remind' })
  async remind(): Promise<void> {
    await this.send();
  }

  async send() {}

  @DistributedLock((id: string) => key`invoice:${id}`)
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
