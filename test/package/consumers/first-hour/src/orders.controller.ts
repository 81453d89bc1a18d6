import { Controller, Get, Param, Post, UseFilters } from '@nestjs/common';
import { key, LockExceptionFilter, LockHandler } from 'nestjs-redis-lock';
import { Jobs } from './jobs.js';
import { Orders } from './orders.js';

@Controller('orders')
@UseFilters(new LockExceptionFilter())
export class OrdersController {
  constructor(
    private readonly orders: Orders,
    private readonly jobs: Jobs,
  ) {}

  @Post(':id/pay')
  pay(@Param('id') id: string): Promise<string> {
    return this.orders.pay(id);
  }

  @Post(':id/pack')
  @LockHandler({ key: (context) => key`order:${context.switchToHttp().getRequest().params.id}`, waitMs: 0 })
  async pack(): Promise<string> {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    return 'packed';
  }

  @Get()
  state() {
    return { mostPayingAtOnce: this.orders.mostPayingAtOnce, ...this.jobs.runs };
  }
}
