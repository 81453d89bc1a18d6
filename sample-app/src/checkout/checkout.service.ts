import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-redis-lock';
import { BasketsService } from '../baskets/baskets.service.js';
import { type Order, StockService } from '../stock/stock.service.js';
import { LoyaltyService } from './loyalty.service.js';

export interface Receipt {
  customer: string;
  orders: Order[];
  points: number;
}

const POINTS_PER_ORDER = 10;

/** Locked services that call each other: basket and customer here, each article in the stock, the customer again in loyalty. */
@Injectable()
export class CheckoutService {
  constructor(
    private readonly baskets: BasketsService,
    private readonly stock: StockService,
    private readonly loyalty: LoyaltyService,
  ) {}

  /** The second click on "buy" finds an empty basket; after an article that is sold out, the rest is still in it. */
  @DistributedLock({
    key: (basket: string, customer: string) => [`basket:${basket}`, `customer:${customer}`],
    mode: 'reentrant',
  })
  async checkOut(basket: string, customer: string): Promise<Receipt> {
    const { skus } = await this.baskets.find(basket);
    const orders: Order[] = [];
    for (const sku of skus) {
      orders.push(await this.stock.order(sku, customer));
      await this.baskets.takeOut(basket, sku);
    }
    const points = await this.loyalty.credit(customer, orders.length * POINTS_PER_ORDER);
    return { customer, orders, points };
  }
}
