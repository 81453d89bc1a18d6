import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Injectable, NotFoundException } from '@nestjs/common';
import { DistributedLock } from 'nestjs-redis-lock';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

export interface Order {
  sku: string;
  buyer: string;
  instance: string;
}

/** The articles on the shelves. */
@Injectable()
export class StockService {
  constructor(private readonly database: Database) {}

  /** One order of an article at a time, across all instances. Orders of other articles do not wait. */
  @DistributedLock((sku: string) => `stock:${sku}`)
  async order(sku: string, buyer: string): Promise<Order> {
    return this.sell(sku, buyer);
  }

  /** The same without the lock, for the demo: it sells what is not there. */
  async orderWithoutLock(sku: string, buyer: string): Promise<Order> {
    return this.sell(sku, buyer);
  }

  async deliver(sku: string, units: number): Promise<void> {
    await this.database.remove(`orders:${sku}`);
    await this.database.setNumber(`stock:${sku}`, units);
  }

  async units(sku: string): Promise<number> {
    const units = await this.database.number(`stock:${sku}`);
    if (units === undefined) throw new NotFoundException(`There is no article ${sku}`);
    return units;
  }

  orders(sku: string): Promise<Order[]> {
    return this.database.rows(`orders:${sku}`);
  }

  /** Between the look at the shelf and the hand that takes, there is time for others to look too. */
  private async sell(sku: string, buyer: string): Promise<Order> {
    const units = await this.units(sku);
    if (units === 0) throw new ConflictException(`${sku} is sold out`);
    await sleep(settings.paymentMs);
    await this.database.setNumber(`stock:${sku}`, units - 1);
    const order = { sku, buyer, instance: settings.instance };
    await this.database.append(`orders:${sku}`, order);
    return order;
  }
}
