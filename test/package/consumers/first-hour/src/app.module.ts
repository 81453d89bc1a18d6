import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { RedisLockModule } from 'nestjs-redis-lock';
import { RedisLockConsoleModule } from 'nestjs-redis-lock/console';
import { AppController } from './app.controller.js';
import { AppService } from './app.service.js';
import { Jobs } from './jobs.js';
import { Orders } from './orders.js';
import { OrdersController } from './orders.controller.js';
import { SignedInGuard, type Visited } from './signed-in.guard.js';

@Module({
  imports: [
    ScheduleModule.forRoot(),
    RedisLockModule.forRoot({
      connection: process.env.REDIS_URL ?? 'redis://localhost:6379',
      keyPrefix: process.env.KEY_PREFIX ?? 'shop',
    }),
    RedisLockConsoleModule.forRoot({
      path: 'ops/locks',
      guards: [SignedInGuard],
      actions: ['runJob'],
      who: ({ headers }: Visited) => headers['x-user'],
    }),
  ],
  controllers: [AppController, OrdersController],
  providers: [AppService, Orders, Jobs],
})
export class AppModule {}
