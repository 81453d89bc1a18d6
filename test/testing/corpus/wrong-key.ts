import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-redis-lock';
import { raceCase, returned } from './race-case.js';
import { Table } from './table.js';

class Vouchers extends Table<string> {
  constructor() {
    super({ v1: 'unused' });
  }
}

@Injectable()
class CheckoutLockedByUser {
  constructor(private readonly vouchers: Vouchers) {}

  @DistributedLock((user: string, _voucher: string) => `voucher:${user}`)
  async redeem(user: string, voucher: string): Promise<boolean> {
    if ((await this.vouchers.find(voucher)) !== 'unused') return false;
    await this.vouchers.save(voucher, `used by ${user}`);
    return true;
  }
}

@Injectable()
class Checkout {
  constructor(private readonly vouchers: Vouchers) {}

  @DistributedLock((_user: string, voucher: string) => `voucher:${voucher}`)
  async redeem(user: string, voucher: string): Promise<boolean> {
    if ((await this.vouchers.find(voucher)) !== 'unused') return false;
    await this.vouchers.save(voucher, `used by ${user}`);
    return true;
  }
}

export const wrongKey = raceCase<Checkout, Vouchers>({
  bug: 'A lock on the wrong key',
  broken: CheckoutLockedByUser as never,
  mended: Checkout,
  repository: Vouchers,
  reads: ['find'],
  actors: { ann: ({ service }) => service.redeem('ann', 'v1'), bob: ({ service }) => service.redeem('bob', 'v1') },
  invariant: (_, outcomes) => (returned(outcomes, true) > 1 ? 'redeemed twice' : undefined),
  story: /ann asks for voucher:ann and gets it; .*bob asks for voucher:bob and gets it; .*: redeemed twice$/,
});
