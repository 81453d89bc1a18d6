import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Inject } from '@nestjs/common';
import type { Job } from 'bullmq';
import type { Redis } from 'ioredis';
import { DistributedLock, key } from 'nestjs-redis-lock';

/** The resources of the customers, and the test's view of them. */
export const REDIS = 'the Redis of the customers';

export const CONCURRENCY = 5;

export interface Done {
  readonly entry: string;
  readonly alone: boolean;
  readonly pid: number;
}

/** A job only says whose turn it is. What is to be done, in which order, stands in the customer's own list. */
@Processor('customers', { concurrency: CONCURRENCY })
export class Customers extends WorkerHost {
  constructor(@Inject(REDIS) private readonly redis: Redis) {
    super();
  }

  @DistributedLock((job: Job) => key`customer:${job.data.customer}`)
  async process({ data: { customer } }: Job): Promise<void> {
    const entry = await this.redis.lindex(`todo:${customer}`, 0);
    if (entry === null) throw new Error('The list has an entry for each job');
    const alone = (await this.redis.incr(`running:${customer}`)) === 1;
    const done: Done = { entry, alone, pid: process.pid };
    await this.redis.rpush(`done:${customer}`, JSON.stringify(done));
    await this.redis.decr(`running:${customer}`);
    if (entry === 'fails once' && (await this.redis.incr('failures')) === 1) throw new Error('not yet');
    await this.redis.lpop(`todo:${customer}`);
  }
}
