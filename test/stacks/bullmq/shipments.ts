import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy } from '@nestjs/common';
import { DelayedError, type Job } from 'bullmq';
import {
  type LockBusyError,
  DistributedLock,
  key,
} from 'nestjs-redis-lock';

/**
 * Returns the job to the queue and frees its slot in the worker for another
 * job. The job keeps all its attempts.
 */
export async function putOff(
  _busy: LockBusyError,
  job: Job,
  token?: string,
): Promise<never> {
  await job.moveToDelayed(Date.now() + 500, token);
  throw new DelayedError();
}

@Processor('shipments', { concurrency: 2 })
export class Shipments extends WorkerHost implements OnModuleDestroy {
  readonly shipped: string[] = [];

  @DistributedLock({
    key: (job: Job) => key`customer:${job.data.customer}`,
    waitMs: 0,
    onBusy: putOff,
  })
  async process(job: Job): Promise<void> {
    this.shipped.push(job.data.parcel);
  }

  // At shutdown: take no new jobs, and finish the running ones while locks
  // are still available.
  async onModuleDestroy(): Promise<void> {
    await this.worker.close();
  }
}
