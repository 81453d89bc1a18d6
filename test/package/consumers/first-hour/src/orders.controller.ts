import { Controller, Get, Param, Post, UseFilters } from '@nestjs/common';
import { key, LockExceptionFilter, LockHandler } from 'nestjs-redis-lock';
import { Jobs } from './jobs.js';
import { Orders } from './orders.js';

@Controller('orders')
@UseFilters(new LockExceptionFilter())
export class OrdersController {
  #finishPacking!: () => void;
  readonly #packed = new Promise<void>((resolve) => (this.#finishPacking = resolve));

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
    await this.#packed;
    return 'packed';
  }

  @Post('packed')
  finishPacking(): void {
    this.#finishPacking();
  }

  @Get()
  state() {
    return { mostPayingAtOnce: this.orders.mostPayingAtOnce, ...this.jobs.runs };
  }
}
