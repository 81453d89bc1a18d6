import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { RedisLockModule } from 'nestjs-redis-lock';
import { AppController } from './app.controller.js';
import { AppService } from './app.service.js';
import { Jobs } from './jobs.js';
import { Orders } from './orders.js';
import { OrdersController } from './orders.controller.js';

@Module({
  imports: [
    ScheduleModule.forRoot(),
    RedisLockModule.forRoot({
      connection: process.env.REDIS_URL ?? 'redis://localhost:6379',
      keyPrefix: process.env.KEY_PREFIX ?? 'shop',
    }),
  ],
  controllers: [AppController, OrdersController],
  providers: [AppService, Orders, Jobs],
})
export class AppModule {}
