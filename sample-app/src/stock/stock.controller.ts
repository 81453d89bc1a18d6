import { Body, Controller, Get, HttpCode, Param, ParseIntPipe, Post, Put } from '@nestjs/common';
import { type Order, StockService } from './stock.service.js';
import { type Count, StocktakingService } from './stocktaking.service.js';

@Controller('stock/:sku')
export class StockController {
  constructor(
    private readonly stock: StockService,
    private readonly stocktaking: StocktakingService,
  ) {}

  @Get()
  async show(@Param('sku') sku: string): Promise<{ units: number; sold: number }> {
    const units = await this.stock.units(sku);
    return { units, sold: (await this.stock.orders(sku)).length };
  }

  @Put()
  @HttpCode(204)
  async deliver(@Param('sku') sku: string, @Body('units', ParseIntPipe) units: number): Promise<void> {
    await this.stock.deliver(sku, units);
  }

  @Post('orders')
  order(@Param('sku') sku: string, @Body('buyer') buyer = 'somebody'): Promise<Order> {
    return this.stock.order(sku, buyer);
  }

  @Post('orders-without-lock')
  orderWithoutLock(@Param('sku') sku: string, @Body('buyer') buyer = 'somebody'): Promise<Order> {
    return this.stock.orderWithoutLock(sku, buyer);
  }

  @Post('counts')
  count(@Param('sku') sku: string): Promise<Count> {
    return this.stocktaking.count(sku);
  }
}
