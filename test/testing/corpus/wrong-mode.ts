import { Injectable, type Type } from '@nestjs/common';
import { ReadLock, WriteLock } from 'nestjs-redis-lock';
import { raceCase } from './race-case.js';
import { Table } from './table.js';

class Prices extends Table<number> {
  constructor() {
    super({ pen: 100 });
  }
}

interface PriceList {
  raise(id: string, by: number): Promise<void>;
}

/** A service whose method is right but for its lock. */
function priceList(lock: MethodDecorator): Type<PriceList> {
  @Injectable()
  class LockedPriceList implements PriceList {
    constructor(private readonly prices: Prices) {}

    @lock
    async raise(id: string, by: number): Promise<void> {
      await this.prices.save(id, (await this.prices.find(id))! + by);
    }
  }
  return LockedPriceList;
}

const raises = {
  repository: Prices,
  reads: ['find'],
  actors: {
    A: ({ service }: { service: PriceList }) => service.raise('pen', 10),
    B: ({ service }: { service: PriceList }) => service.raise('pen', 20),
  },
  invariant: ({ repository }: { repository: Prices }) =>
    repository.row('pen') === 130 ? undefined : 'a raise is lost',
  story: /A Prices.find\("pen"\) -> 100; .*B Prices.find\("pen"\) -> 100; .*: a raise is lost$/,
} as const;

export const readLockForWrite = raceCase<PriceList, Prices>({
  ...raises,
  bug: 'A read lock for a write',
  broken: priceList(ReadLock('price-list')),
  mended: priceList(WriteLock('price-list')),
});
