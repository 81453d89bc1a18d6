import { Body, Controller, type ExecutionContext, Get, Param, Post } from '@nestjs/common';
import { key, LockHandler } from 'nestjs-redis-lock';
import { type Basket, BasketsService } from './baskets.service.js';

/** A basket is changed by one request at a time, whatever the handler calls: the lock is held until the response is known. */
const theBasket = (context: ExecutionContext): string => {
  const { params } = context.switchToHttp().getRequest<{ params: { id: string } }>();
  return key`basket:${params.id}`;
};

@Controller('baskets/:id')
export class BasketsController {
  constructor(private readonly baskets: BasketsService) {}

  @Get()
  show(@Param('id') id: string): Promise<Basket> {
    return this.baskets.find(id);
  }

  @Post('items')
  @LockHandler(theBasket)
  add(@Param('id') id: string, @Body('sku') sku: string): Promise<Basket> {
    return this.baskets.add(id, sku);
  }
}
