// A worker in a process of its own: takes jobs of all queues, and reports in lines of JSON.
import { BullModule, OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Job } from 'bullmq';
import { Redis } from 'ioredis';
import { DistributedLock, key, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { Customers, REDIS } from './customers.js';
import { Stock } from './orders.js';
import { connectionTo, LEASE_MS, STALLING } from './queues.js';
import { RedisStock, SalesInAHurry } from './redis-stock.js';

const url = process.argv[2]!;
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

/** Ends no job but the one that is stopped. */
@Processor('killed', STALLING)
class Killed extends WorkerHost {
  constructor(private readonly locks: RedisLockService) {
    super();
  }

  @DistributedLock({ key: (job: Job) => key`killed:${job.data.id}`, leaseMs: LEASE_MS })
  async process({ data: { id } }: Job): Promise<void> {
    say({ id, token: this.locks.currentOrThrow().fencingToken });
    if (id !== 'stopped') await new Promise(() => {});
  }

  /** BullMQ emits an error for a stalled worker that has lost its job. Without a listener, it prints that. */
  @OnWorkerEvent('error')
  onError(): void {}
}

/** Sells three pieces, and hangs in the middle of the fourth sale. */
class HangingStock extends RedisStock {
  #sales = 0;

  protected override async asksTheCarrier(order: string): Promise<void> {
    await super.asksTheCarrier(order);
    if (++this.#sales < 4) return;
    say({ sells: order });
    await new Promise(() => {});
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({ connection: url, leaseMs: LEASE_MS }),
    BullModule.forRoot(connectionTo(url)),
    BullModule.registerQueue({ name: 'customers' }, { name: 'killed' }, { name: 'orders' }),
  ],
  providers: [
    Customers,
    Killed,
    SalesInAHurry,
    { provide: Stock, useClass: HangingStock },
    { provide: REDIS, useFactory: () => new Redis(url) },
  ],
})
class AppModule {}

await NestFactory.createApplicationContext(AppModule, { logger: false });
say({ isReady: true });
