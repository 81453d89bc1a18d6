import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import {
  DistributedLock,
  key,
  type Lease,
  mergeSignals,
  RedisLockService,
} from 'nestjs-redis-lock';

export abstract class Bank {
  abstract charge(
    order: string,
    fencingToken: number,
    signal: AbortSignal,
  ): Promise<void>;
}

@Injectable()
export class Checkout {
  constructor(
    private readonly locks: RedisLockService,
    @InjectQueue('charges') private readonly queue: Queue,
  ) {}

  @DistributedLock((order: string) => key`order:${order}`)
  async checkOut(order: string): Promise<Job> {
    // The last step under the lock. No process renews the lease on the way,
    // so its time has to cover the queue.
    const lease = await this.locks
      .currentOrThrow()
      .transfer({ leaseMs: 60_000 });
    return this.queue.add('charge', { order, lease }, { attempts: 2 });
  }
}

@Processor('charges')
export class Charges extends WorkerHost {
  constructor(
    private readonly locks: RedisLockService,
    private readonly bank: Bank,
  ) {
    super();
  }

  // BullMQ passes a signal to a method with three parameters.
  // worker.cancelJob() aborts it.
  async process(
    { data: { order, lease }, attemptsStarted }: Job,
    _token?: string,
    cancel?: AbortSignal,
  ): Promise<void> {
    const work = (own: Lease): Promise<void> =>
      this.#charge(order, own, cancel);
    // A lease is adopted once. A later attempt acquires the lock anew.
    if (attemptsStarted === 1) await this.locks.usingAdopted(lease, work);
    else
      await this.locks.using(key`order:${order}`, { signal: cancel }, work);
  }

  async #charge(
    order: string,
    lease: Lease,
    cancel?: AbortSignal,
  ): Promise<void> {
    const stop = mergeSignals(lease.signal, cancel);
    try {
      await this.bank.charge(order, lease.fencingToken, stop.signal);
    } finally {
      stop.dispose();
    }
  }
}
