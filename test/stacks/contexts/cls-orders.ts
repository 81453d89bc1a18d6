import { Controller, Get, Injectable, Param } from '@nestjs/common';
import { ClsService } from 'nestjs-cls';
import { DistributedLock, key, RedisLockService } from 'nestjs-redis-lock';

@Injectable()
export class Orders {
  constructor(
    private readonly cls: ClsService<{ user: string }>,
    private readonly locks: RedisLockService,
  ) {}

  // The key function is called in the caller's context, with the object as
  // `this`.
  @DistributedLock({
    key(this: Orders, orderId: string) {
      return key`${this.cls.get('user')}:order:${orderId}`;
    },
  })
  async pay(orderId: string) {
    // After the wait for the lock, the store is still the caller's.
    return {
      orderId,
      user: this.cls.get('user'),
      lock: this.locks.current()?.resource,
    };
  }
}

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: Orders) {}

  @Get(':id')
  pay(@Param('id') orderId: string) {
    return this.orders.pay(orderId);
  }
}
