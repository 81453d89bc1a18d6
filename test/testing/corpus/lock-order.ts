import { Injectable } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { raceCase } from './race-case.js';
import { Table } from './table.js';

class Accounts extends Table<number> {
  constructor() {
    super({ ann: 10, bob: 10 });
  }
}

interface Bank {
  transfer(from: string, to: string): Promise<void>;
}

@Injectable()
class BankLocksOneByOne implements Bank {
  constructor(
    private readonly locks: RedisLockService,
    private readonly accounts: Accounts,
  ) {}

  async transfer(from: string, to: string): Promise<void> {
    await this.locks.using(`account:${from}`, () =>
      this.locks.using(`account:${to}`, async () => {
        await this.accounts.save(from, (await this.accounts.find(from))! - 1);
        await this.accounts.save(to, (await this.accounts.find(to))! + 1);
      }),
    );
  }
}

@Injectable()
class BankLocksBoth implements Bank {
  constructor(
    private readonly locks: RedisLockService,
    private readonly accounts: Accounts,
  ) {}

  async transfer(from: string, to: string): Promise<void> {
    await this.locks.using([`account:${from}`, `account:${to}`], async () => {
      await this.accounts.save(from, (await this.accounts.find(from))! - 1);
      await this.accounts.save(to, (await this.accounts.find(to))! + 1);
    });
  }
}

export const oppositeOrder = raceCase<Bank, Accounts>({
  bug: 'Two locks in opposite orders',
  broken: BankLocksOneByOne,
  mended: BankLocksBoth,
  repository: Accounts,
  reads: ['find'],
  byRow: true,
  actors: { A: ({ service }) => service.transfer('ann', 'bob'), B: ({ service }) => service.transfer('bob', 'ann') },
  invariant: ({ repository }) =>
    repository.row('ann') === 10 && repository.row('bob') === 10 ? undefined : 'money is lost',
  story: /A .*account:ann.*B .*account:bob.*: .*(wait|deadlock|timed out|LockTimeoutError)/i,
});
