import { Injectable } from '@nestjs/common';
import { DistributedLock, RedisLockService } from 'nestjs-redis-lock';
import { raceCase, returned } from './race-case.js';
import { Table } from './table.js';

class Wallets extends Table<number> {
  constructor() {
    super({ ann: 10 });
  }
}

interface Cashier {
  withdraw(owner: string, amount: number): Promise<boolean>;
}

@Injectable()
class CashierReleasesEarly implements Cashier {
  constructor(
    private readonly locks: RedisLockService,
    private readonly wallets: Wallets,
  ) {}

  async withdraw(owner: string, amount: number): Promise<boolean> {
    const balance = await this.locks.using(`wallet:${owner}`, () => this.wallets.find(owner));
    if (balance! < amount) return false;
    await this.wallets.save(owner, balance! - amount);
    return true;
  }
}

@Injectable()
class CashierChecksBefore implements Cashier {
  constructor(
    private readonly locks: RedisLockService,
    private readonly wallets: Wallets,
  ) {}

  async withdraw(owner: string, amount: number): Promise<boolean> {
    if ((await this.wallets.find(owner))! < amount) return false;
    return this.locks.using(`wallet:${owner}`, async () => {
      await this.wallets.save(owner, (await this.wallets.find(owner))! - amount);
      return true;
    });
  }
}

@Injectable()
class MendedCashier implements Cashier {
  constructor(
    private readonly locks: RedisLockService,
    private readonly wallets: Wallets,
  ) {}

  async withdraw(owner: string, amount: number): Promise<boolean> {
    return this.locks.using(`wallet:${owner}`, async () => {
      const balance = await this.wallets.find(owner);
      if (balance! < amount) return false;
      await this.wallets.save(owner, balance! - amount);
      return true;
    });
  }
}

export const releasedEarly = raceCase<Cashier, Wallets>({
  bug: 'The lock released before the write',
  broken: CashierReleasesEarly,
  mended: MendedCashier,
  repository: Wallets,
  reads: ['find'],
  actors: { A: ({ service }) => service.withdraw('ann', 10), B: ({ service }) => service.withdraw('ann', 10) },
  invariant: (_, outcomes) => (returned(outcomes, true) > 1 ? 'paid out twice' : undefined),
  story: /A releases? .*wallet:ann.*; .*B Wallets.find\("ann"\) -> 10; .*: paid out twice$/,
});

export const checkBeforeLock = raceCase<Cashier, Wallets>({
  bug: 'The check before the lock',
  broken: CashierChecksBefore,
  mended: MendedCashier,
  repository: Wallets,
  reads: ['find'],
  actors: { A: ({ service }) => service.withdraw('ann', 10), B: ({ service }) => service.withdraw('ann', 10) },
  invariant: ({ repository }) => (repository.row('ann')! < 0 ? 'overdrawn' : undefined),
  story:
    /^A Wallets.find\("ann"\) -> 10; .*B Wallets.find\("ann"\) -> 10; B asks .*A Wallets.save\("ann", 0\); .*: overdrawn$/,
});

class Shelves extends Table<number> {
  constructor() {
    super({ pens: 0 });
  }
}

interface Warehouse {
  restock(boxes: readonly number[]): Promise<void>;
}

@Injectable()
class WarehouseForgetsToAwait implements Warehouse {
  constructor(private readonly shelves: Shelves) {}

  @DistributedLock('shelves')
  async restock(boxes: readonly number[]): Promise<void> {
    for (const pens of boxes) void this.#add(pens);
  }

  async #add(pens: number): Promise<void> {
    await this.shelves.save('pens', (await this.shelves.find('pens'))! + pens);
  }
}

@Injectable()
class MendedWarehouse implements Warehouse {
  constructor(private readonly shelves: Shelves) {}

  @DistributedLock('shelves')
  async restock(boxes: readonly number[]): Promise<void> {
    for (const pens of boxes) await this.#add(pens);
  }

  async #add(pens: number): Promise<void> {
    await this.shelves.save('pens', (await this.shelves.find('pens'))! + pens);
  }
}

export const workNotAwaited = raceCase<Warehouse, Shelves>({
  bug: 'Work that is not awaited',
  broken: WarehouseForgetsToAwait,
  mended: MendedWarehouse,
  repository: Shelves,
  reads: ['find'],
  actors: { A: ({ service }) => service.restock([5]), B: ({ service }) => service.restock([5]) },
  invariant: ({ repository }) => (repository.row('pens') === 10 ? undefined : 'pens are missing'),
  story: /A Shelves.find\("pens"\) -> 0; .*B Shelves.find\("pens"\) -> 0; .*: pens are missing$/,
});
