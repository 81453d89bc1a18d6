import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import { Inject, Injectable } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { DistributedLock, key } from 'nestjs-redis-lock';
import { putOff } from './shipments.js';

export const REDIS = 'an ioredis client of yours';
const turns = { attempts: 5, backoff: { type: 'fixed', delay: 200 } };

@Injectable()
export class Inbox {
  constructor(
    @InjectQueue('inbox') private readonly queue: Queue,
    @Inject(REDIS) private readonly redis: Redis,
  ) {}

  async add(customer: string, message: string): Promise<void> {
    await this.redis.rpush(`inbox:${customer}`, message);
    await this.queue.add('turn', { customer }, turns);
  }
}

@Processor('inbox', { concurrency: 5 })
export class InboxWorker extends WorkerHost {
  constructor(@Inject(REDIS) private readonly redis: Redis) {
    super();
  }

  @DistributedLock({
    key: (job: Job) => key`inbox:${job.data.customer}`,
    waitMs: 0,
    onBusy: putOff, // frees its slot in the worker for another customer
  })
  async process({ data: { customer } }: Job): Promise<void> {
    const list = `inbox:${customer}`;
    // Handles every message, even one whose own job has failed.
    for (;;) {
      const message = await this.redis.lindex(list, 0);
      if (message === null) return;
      await this.handle(customer, message);
      await this.redis.lrem(list, 1, message);
    }
  }

  protected async handle(customer: string, message: string): Promise<void> {
    await this.redis.rpush(`handled:${customer}`, message);
  }
}
