import { Injectable, Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { SentryCron, SentryTraced } from '@sentry/nestjs';
import { SentryGlobalFilter, SentryModule } from '@sentry/nestjs/setup';
import { DistributedLock, LockExceptionFilter } from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';

@Injectable()
export class Prices {
  @SentryTraced() // above: the span includes the wait for the lock
  @DistributedLock('prices')
  async load(): Promise<void> {}

  @SingletonCron('* * * * *', { name: 'prices' })
  // below: only the instance that runs the tick checks in
  @SentryCron('prices')
  async reload(): Promise<void> {}
}

@Module({
  imports: [SentryModule.forRoot()],
  providers: [
    Prices,
    { provide: APP_FILTER, useClass: SentryGlobalFilter },
    // Nest asks the last filter first, so Sentry gets no busy locks
    { provide: APP_FILTER, useClass: LockExceptionFilter },
  ],
})
export class PricesModule {}
