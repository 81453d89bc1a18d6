import {
  Controller,
  Module,
  Param,
  ParseIntPipe,
  Post,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import {
  DistributedLock,
  key,
  LockExceptionFilter,
} from 'nestjs-redis-lock';

@Controller('orders')
export class OrdersController {
  @Post(':id/pay')
  @DistributedLock({ key: (id: number) => key`order:${id}`, waitMs: 1_000 })
  async pay(@Param('id', ParseIntPipe) id: number) {
    return { paid: id };
  }
}

@Module({
  imports: [ThrottlerModule.forRoot([{ ttl: 60_000, limit: 2 }])],
  controllers: [OrdersController],
  providers: [
    // runs before any lock is acquired
    { provide: APP_GUARD, useClass: ThrottlerGuard },
    { provide: APP_FILTER, useClass: LockExceptionFilter },
  ],
})
export class ShopModule {}
