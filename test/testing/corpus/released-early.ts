import { Injectable } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
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
