import { Processor } from '@nestjs/bullmq';
import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { REDIS } from './customers.js';
import { Sales, Stock } from './orders.js';
import { STALLING } from './queues.js';

/** Reads, and then writes what it has made of that: without a lock, two at once sell one piece twice. */
@Injectable()
export class RedisStock extends Stock {
  constructor(@Inject(REDIS) private readonly redis: Redis) {
    super();
  }

  async sell(item: string, order: string, fencingToken: number, signal: AbortSignal): Promise<boolean> {
    if (await this.redis.hexists(`sold:${item}`, order)) return true;
    const left = Number(await this.redis.get(`left:${item}`));
    await this.asksTheCarrier(order);
    signal.throwIfAborted();
    if (left === 0) return false;
    const sale = this.redis.multi().hset(`sold:${item}`, order, fencingToken);
    await sale.set(`left:${item}`, left - 1).exec();
    return true;
  }

  protected asksTheCarrier(_order: string): Promise<void> {
    return new Promise(setImmediate);
  }
}

/** Its jobs are soon taken by another worker when it has died. */
@Processor('orders', { ...STALLING, concurrency: 5 })
export class SalesInAHurry extends Sales {}
