import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

export interface Basket {
  skus: string[];
}

/** Reads a basket, changes it, and writes it back. The caller must hold the lock of the basket. */
@Injectable()
export class BasketsService {
  constructor(private readonly database: Database) {}

  async find(id: string): Promise<Basket> {
    return (await this.database.json<Basket>(`basket:${id}`)) ?? { skus: [] };
  }

  async add(id: string, sku: string): Promise<Basket> {
    const basket = await this.find(id);
    await sleep(settings.paymentMs);
    basket.skus.push(sku);
    await this.database.setJson(`basket:${id}`, basket);
    return basket;
  }

  async takeOut(id: string, sku: string): Promise<void> {
    const basket = await this.find(id);
    basket.skus.splice(basket.skus.indexOf(sku), 1);
    await this.database.setJson(`basket:${id}`, basket);
  }
}
