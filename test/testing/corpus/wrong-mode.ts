import { Injectable, type Type } from '@nestjs/common';
import { DistributedLock, DistributedSemaphore, ReadLock, WriteLock } from 'nestjs-redis-lock';
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

export const tooManyPermits = raceCase<PriceList, Prices>({
  ...raises,
  bug: 'A semaphore with more than one permit for a write',
  broken: priceList(DistributedSemaphore({ key: 'prices', permits: 2 })),
  mended: priceList(DistributedSemaphore({ key: 'prices', permits: 1 })),
});

export const skippedWork = raceCase<PriceList, Prices>({
  ...raises,
  bug: "`onBusy: 'skip'` for work that must be done",
  broken: priceList(DistributedLock({ key: 'prices', onBusy: 'skip' })),
  mended: priceList(DistributedLock({ key: 'prices' })),
  story: /B .*prices.*: a raise is lost$/,
});

class Carts extends Table<number> {
  constructor() {
    super({ c1: 0 });
  }
}

interface Cart {
  addBoth(id: string): Promise<void>;
}

@Injectable()
class CartEnteredTwiceAtOnce implements Cart {
  constructor(private readonly carts: Carts) {}

  @DistributedLock({ key: (id: string) => `cart:${id}`, mode: 'reentrant' })
  async add(id: string): Promise<void> {
    await this.carts.save(id, (await this.carts.find(id))! + 1);
  }

  @DistributedLock({ key: (id: string) => `cart:${id}`, mode: 'reentrant' })
  async addBoth(id: string): Promise<void> {
    await Promise.all([this.add(id), this.add(id)]);
  }
}

@Injectable()
class MendedCart implements Cart {
  constructor(private readonly carts: Carts) {}

  @DistributedLock({ key: (id: string) => `cart:${id}`, mode: 'reentrant' })
  async add(id: string): Promise<void> {
    await this.carts.save(id, (await this.carts.find(id))! + 1);
  }

  @DistributedLock({ key: (id: string) => `cart:${id}`, mode: 'reentrant' })
  async addBoth(id: string): Promise<void> {
    await this.add(id);
    await this.add(id);
  }
}

export const enteredTwiceAtOnce = raceCase<Cart, Carts>({
  bug: 'A reentrant lock entered twice at once',
  broken: CartEnteredTwiceAtOnce,
  mended: MendedCart,
  repository: Carts,
  reads: ['find'],
  actors: { A: ({ service }) => service.addBoth('c1') },
  invariant: ({ repository }) => (repository.row('c1') === 2 ? undefined : 'an article is missing'),
  story: /A Carts.find\("c1"\) -> 0; .*A Carts.find\("c1"\) -> 0; .*: an article is missing$/,
});
