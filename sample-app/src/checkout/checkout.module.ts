import { Module } from '@nestjs/common';
import { BasketsModule } from '../baskets/baskets.module.js';
import { StockModule } from '../stock/stock.module.js';
import { CheckoutController } from './checkout.controller.js';
import { CheckoutService } from './checkout.service.js';
import { LoyaltyService } from './loyalty.service.js';

@Module({
  imports: [BasketsModule, StockModule],
  controllers: [CheckoutController],
  providers: [CheckoutService, LoyaltyService],
})
export class CheckoutModule {}
