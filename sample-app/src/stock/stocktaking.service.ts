import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DistributedLock, RedisLockService } from 'nestjs-redis-lock';
import { settings } from '../settings.js';
import { StockService } from './stock.service.js';

export interface Count {
  sku: string;
  units: number;
  shelves: number;
}

const SHELVES = 5;

/** A long job on request. A second request while it runs is turned away at once: 423 Locked. */
@Injectable()
export class StocktakingService {
  constructor(
    private readonly locks: RedisLockService,
    private readonly stock: StockService,
  ) {}

  /**
   * Runs longer than the lease, which is renewed. If the lease is lost anyway, another instance may have begun to
   * count: `signal` stops this one at once, and the request is answered with 503.
   */
  @DistributedLock({
    key: (sku: string) => `count:${sku}`,
    waitMs: 0,
    leaseMs: settings.countLeaseMs,
  })
  async count(sku: string): Promise<Count> {
    const { signal } = this.locks.current()!;
    for (let shelf = 1; shelf <= SHELVES; shelf++) await sleep(settings.shelfMs, undefined, { signal });
    return { sku, units: await this.stock.units(sku), shelves: SHELVES };
  }
}
