import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-redis-lock';
import { raceCase, returned } from './race-case.js';
import { Table } from './table.js';

class Stock extends Table<number> {
  constructor() {
    super({ pen: 1 });
  }
}

@Injectable()
class ShopWithoutLock {
  constructor(private readonly stock: Stock) {}

  async sell(id: string): Promise<boolean> {
    const left = await this.stock.find(id);
    if (!left) return false;
    await this.stock.save(id, left - 1);
    return true;
  }
}

@Injectable()
class Shop {
  constructor(private readonly stock: Stock) {}

  @DistributedLock((id: string) => `stock:${id}`)
  async sell(id: string): Promise<boolean> {
    const left = await this.stock.find(id);
    if (!left) return false;
    await this.stock.save(id, left - 1);
    return true;
  }
}

export const noLock = raceCase<Shop | ShopWithoutLock, Stock>({
  bug: 'No lock',
  broken: ShopWithoutLock,
  mended: Shop,
  repository: Stock,
  reads: ['find'],
  actors: { A: ({ service }) => service.sell('pen'), B: ({ service }) => service.sell('pen') },
  invariant: (_, outcomes) => (returned(outcomes, true) > 1 ? 'oversold' : undefined),
  story: /^A Stock.find\("pen"\) -> 1; B Stock.find\("pen"\) -> 1; .*: oversold$/,
});
