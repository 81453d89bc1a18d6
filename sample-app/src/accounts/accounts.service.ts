import { setTimeout as sleep } from 'node:timers/promises';
import { BadRequestException, ConflictException, Injectable, NotFoundException } from '@nestjs/common';
import { DistributedLock } from 'nestjs-redis-lock';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

/** The vouchers of the shop's customers, in cents. */
@Injectable()
export class AccountsService {
  constructor(private readonly database: Database) {}

  /**
   * Two keys, both or none. They are locked in the same order everywhere, so alice -> bob and bob -> alice at the same moment
   * wait for one another and never for each other.
   */
  @DistributedLock((from: string, to: string) => [`account:${from}`, `account:${to}`])
  async transfer(from: string, to: string, amount: number): Promise<void> {
    if (from === to || !Number.isSafeInteger(amount) || amount <= 0) {
      throw new BadRequestException('Give two different accounts and a positive amount in cents');
    }
    const source = await this.balance(from);
    const target = await this.balance(to);
    if (source < amount) throw new ConflictException(`${from} has ${source}, which is less than ${amount}`);
    await sleep(settings.paymentMs);
    await this.database.setNumber(`account:${from}`, source - amount);
    await this.database.setNumber(`account:${to}`, target + amount);
  }

  async open(name: string, balance: number): Promise<void> {
    await this.database.setNumber(`account:${name}`, balance);
  }

  async balance(name: string): Promise<number> {
    const balance = await this.database.number(`account:${name}`);
    if (balance === undefined) throw new NotFoundException(`There is no account ${name}`);
    return balance;
  }
}
