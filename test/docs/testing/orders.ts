import {
  Controller,
  Injectable,
  Module,
  Param,
  Post,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import {
  DistributedLock,
  key,
  LeaderOnly,
  LockExceptionFilter,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import {
  SingletonCron,
  type SingletonRun,
} from 'nestjs-redis-lock/schedule';

@Injectable()
export class Orders {
  readonly paid: string[] = []; // stands for a database

  constructor(private readonly locks: RedisLockService) {}

  @DistributedLock({ key: (id: string) => key`order:${id}`, waitMs: 5_000 })
  async pay(id: string): Promise<string> {
    await this.save(id);
    return `paid ${id}`;
  }

  async payAll(ids: string[]): Promise<void> {
    await this.locks.using('all-orders', async (lease) => {
      for (const id of ids) {
        lease.signal.throwIfAborted(); // throws if the lease is lost
        await this.pay(id);
      }
    });
  }

  async save(id: string): Promise<void> {
    // throws if the caller has no lock
    this.locks.assertLocked(key`order:${id}`);
    this.paid.push(id);
  }
}

@Injectable()
export class Night {
  readonly reports: string[] = [];

  @SingletonCron('0 1 * * *', {
    name: 'nightly',
    timeZone: 'Europe/Vienna',
  })
  async report({ tick }: SingletonRun): Promise<void> {
    this.reports.push(tick);
  }

  @LeaderOnly('mailer')
  async mail(): Promise<string | undefined> {
    return 'mailed';
  }
}

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: Orders) {}

  @Post(':id/pay')
  pay(@Param('id') id: string): Promise<string> {
    return this.orders.pay(id);
  }

  @Post(':id/cancel')
  // doesn't wait: responds with 423 at once
  @DistributedLock({ key: (id: string) => key`order:${id}`, waitMs: 0 })
  async cancel(@Param('id') id: string): Promise<string> {
    return `cancelled ${id}`;
  }
}

@Module({
  imports: [
    ScheduleModule.forRoot(),
    RedisLockModule.forRoot({ connection: 'redis://localhost:6379' }),
  ],
  controllers: [OrdersController],
  providers: [
    Orders,
    Night,
    { provide: APP_FILTER, useClass: LockExceptionFilter },
  ],
})
export class AppModule {}
