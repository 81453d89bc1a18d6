import { Injectable } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { raceCase } from './race-case.js';
import { Table } from './table.js';

type OrderState = 'paid' | 'shipping' | 'shipped';

class Orders extends Table<OrderState> {
  constructor() {
    super({ o1: 'paid' });
  }
}

interface Shipping {
  ship(order: string): Promise<void>;
}

@Injectable()
class ShippingTrustsFlag implements Shipping {
  constructor(
    private readonly locks: RedisLockService,
    private readonly orders: Orders,
  ) {}

  ship(order: string): Promise<void> {
    return this.locks.using(`order:${order}`, { leaseMs: 5_000 }, async () => {
      if ((await this.orders.find(order)) !== 'paid') return;
      await this.orders.save(order, 'shipping');
      await this.orders.save(order, 'shipped');
    });
  }
}

@Injectable()
class MendedShipping implements Shipping {
  constructor(
    private readonly locks: RedisLockService,
    private readonly orders: Orders,
  ) {}

  ship(order: string): Promise<void> {
    return this.locks.using(`order:${order}`, { leaseMs: 5_000 }, async () => {
      if ((await this.orders.find(order)) === 'shipped') return;
      await this.orders.save(order, 'shipping');
      await this.orders.save(order, 'shipped');
    });
  }
}

export const flagOutlivesCrash = raceCase<Shipping, Orders>({
  bug: 'A flag that outlives the crash of its process',
  broken: ShippingTrustsFlag,
  mended: MendedShipping,
  repository: Orders,
  reads: ['find'],
  actors: { A: ({ service }) => service.ship('o1'), B: ({ service }) => service.ship('o1') },
  invariant: ({ repository }) => (repository.row('o1') === 'shipped' ? undefined : 'the order is never shipped'),
  story:
    /A Orders.save\("o1", "shipping"\); .*A .*(killed|dies).*B Orders.find\("o1"\) -> "shipping".*: the order is never/,
  options: { faults: ['kill'] },
});
