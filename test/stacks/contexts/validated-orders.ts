import { Body, Controller, Post } from '@nestjs/common';
import { IsInt, IsUUID, Max, Min } from 'class-validator';
import { DistributedLock, key, RedisLockService } from 'nestjs-redis-lock';

export class PayOrder {
  @IsUUID()
  orderId!: string;

  @IsInt()
  @Min(1)
  @Max(1_000_000)
  cents!: number;
}

@Controller('orders')
export class OrdersController {
  constructor(private readonly locks: RedisLockService) {}

  // The key function gets the body after ValidationPipe has transformed it.
  // A rejected body takes no lock.
  @Post('pay')
  @DistributedLock(({ orderId }: PayOrder) => key`order:${orderId}`)
  async pay(@Body() { cents }: PayOrder) {
    return { cents, lock: this.locks.current()?.resource };
  }
}
