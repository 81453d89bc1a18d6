import { Body, Controller, Get, Param, ParseIntPipe, Post } from '@nestjs/common';
import { CheckoutService, type Receipt } from './checkout.service.js';
import { LoyaltyService } from './loyalty.service.js';

@Controller()
export class CheckoutController {
  constructor(
    private readonly checkout: CheckoutService,
    private readonly loyalty: LoyaltyService,
  ) {}

  @Post('baskets/:id/checkout')
  checkOut(@Param('id') basket: string, @Body('customer') customer: string): Promise<Receipt> {
    return this.checkout.checkOut(basket, customer);
  }

  @Get('customers/:name/points')
  async points(@Param('name') customer: string): Promise<{ points: number }> {
    return { points: await this.loyalty.points(customer) };
  }

  @Post('customers/:name/points')
  async credit(
    @Param('name') customer: string,
    @Body('points', ParseIntPipe) points: number,
  ): Promise<{ points: number }> {
    return { points: await this.loyalty.credit(customer, points) };
  }
}
