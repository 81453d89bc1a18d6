import { Injectable } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { settings } from '../settings.js';
import { ImportQueue } from './import-queue.js';
import { type Finished, type ImportFile, ImportRegister } from './import-register.js';

/** Also of the worker that adopts it. */
const LEASE_MS = 2_000;
/** How long a file may lie in the queue before its lock ends. */
const IN_QUEUE_MS = 10_000;

/** Where files of orders come in. The booking is a worker's: see import-worker.service.ts. */
@Injectable()
export class ImportsService {
  constructor(
    private readonly locks: RedisLockService,
    private readonly queue: ImportQueue,
    private readonly register: ImportRegister,
  ) {}

  /**
   * Locks the batch, which stays locked in the queue and until the worker is done. Waits for the file before it, so there is
   * never more than one in the queue. If anything fails in here the lease is released, or ends unadopted.
   */
  async begin(file: ImportFile): Promise<void> {
    await using lease = await this.locks.acquire(`import:${file.batch}`, { leaseMs: LEASE_MS });
    await this.register.open(file.batch, lease.fencingToken);
    await this.queue.put({
      ...file,
      begunBy: settings.instance,
      lease: await lease.transfer({ leaseMs: IN_QUEUE_MS }),
    });
  }

  /** A lock that ends where the queue begins, for the demo: two workers book at once, and orders are lost. */
  async beginWithoutHandover(file: ImportFile): Promise<void> {
    await using _lease = await this.locks.acquire(`import:${file.batch}`);
    await this.queue.put({ ...file, begunBy: settings.instance });
  }

  progress(batch: string): Promise<number> {
    return this.register.total(batch);
  }

  /** As soon as all files of the batch are booked, on whatever instances. */
  async result(batch: string, files: number): Promise<{ total: number; finished: Finished[] }> {
    await this.locks.latch(`import:${batch}`, files).wait();
    return { total: await this.register.total(batch), finished: await this.register.finished(batch) };
  }
}
