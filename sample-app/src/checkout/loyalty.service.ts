import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-redis-lock';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

/** Points for what a customer buys. Called by the checkout, and on its own. */
@Injectable()
export class LoyaltyService {
  constructor(private readonly database: Database) {}

  /** Reentrant: within a checkout of the same customer it goes right in; otherwise it waits for that checkout. */
  @DistributedLock({ key: (customer: string) => `customer:${customer}`, mode: 'reentrant' })
  async credit(customer: string, points: number): Promise<number> {
    const before = await this.points(customer);
    await sleep(settings.paymentMs);
    await this.database.setNumber(`points:${customer}`, before + points);
    return before + points;
  }

  async points(customer: string): Promise<number> {
    return (await this.database.number(`points:${customer}`)) ?? 0;
  }
}
