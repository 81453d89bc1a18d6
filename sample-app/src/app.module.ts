import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { LockExceptionFilter, RedisLockModule } from 'nestjs-redis-lock';
import { RedisLockConsoleModule } from 'nestjs-redis-lock/console';
import { openTelemetry } from 'nestjs-redis-lock/telemetry';
import { AccountsModule } from './accounts/accounts.module.js';
import { AdviceModule } from './advice/advice.module.js';
import { BasketsModule } from './baskets/baskets.module.js';
import { BestsellersModule } from './bestsellers/bestsellers.module.js';
import { CatalogueModule } from './catalogue/catalogue.module.js';
import { CheckoutModule } from './checkout/checkout.module.js';
import { DatabaseModule } from './database/database.module.js';
import { DrawModule } from './draw/draw.module.js';
import { ExportsModule } from './exports/exports.module.js';
import { HealthModule } from './health/health.module.js';
import { LedgerModule } from './ledger/ledger.module.js';
import { MailsModule } from './mails/mails.module.js';
import { meterProvider } from './metrics/metrics.js';
import { MetricsModule } from './metrics/metrics.module.js';
import { ConsoleGuard, operatorOf } from './operators/console.guard.js';
import { OperatorsModule } from './operators/operators.module.js';
import { ReportModule } from './report/report.module.js';
import { RunBookModule } from './run-book/run-book.module.js';
import { settings } from './settings.js';
import { StockModule } from './stock/stock.module.js';
import { TillsModule } from './tills/tills.module.js';
import { TimeClockModule } from './time-clock/time-clock.module.js';

@Module({
  imports: [
    RedisLockModule.forRoot({
      connection: settings.redisUrl,
      keyPrefix: `${settings.shop}-lock`,
      instanceId: `${settings.instance}:${process.pid}`,
      waitMs: settings.lockWaitMs,
      // So that an instance which waits for another one knows for what kind of work.
      labelGroups: true,
      telemetry: openTelemetry({ meterProvider }),
      // So that the first look at GET /operators/contention shows something.
      contention: { fromStart: true },
    }),
    ScheduleModule.forRoot(),
    DatabaseModule,
    RunBookModule,
    TimeClockModule,
    StockModule,
    AccountsModule,
    BasketsModule,
    CheckoutModule,
    DrawModule,
    ReportModule,
    TillsModule,
    LedgerModule,
    CatalogueModule,
    ExportsModule,
    BestsellersModule,
    AdviceModule,
    MailsModule,
    OperatorsModule,
    RedisLockConsoleModule.forRoot({
      path: 'operators/console',
      guards: [ConsoleGuard],
      actions: ['release', 'runJob', 'pauseJob', 'resumeJob'],
      who: operatorOf,
      title: settings.shop,
    }),
    MetricsModule,
    HealthModule,
  ],
  // 423 Locked if the resource is busy, 503 if Redis is down; both with Retry-After.
  providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }],
})
export class AppModule {}
