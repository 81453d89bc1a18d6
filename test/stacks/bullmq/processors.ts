// Processors for the tests, one for each story.
import { OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import { Inject, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import type { Job } from 'bullmq';
import { DistributedLock, key, RedisLockService } from 'nestjs-redis-lock';
import { gate } from '../../support/expect/tracked.js';

/** The observations of one processor call. */
export type Seen = readonly [id: unknown, lease: string | undefined, ...more: unknown[]];

/** Waits for the lock longer than BullMQ lets a job be without a sign of life. */
@Processor('patient', { lockDuration: 1_500, stalledInterval: 300 })
export class Patient extends WorkerHost {
  readonly seen: Seen[] = [];

  constructor(private readonly locks: RedisLockService) {
    super();
  }

  @DistributedLock((job: Job) => key`patient:${job.data.id}`)
  async process({ data }: Job, token?: string, cancel?: AbortSignal): Promise<void> {
    this.seen.push([data.id, this.locks.current()?.resource, typeof token, cancel?.aborted]);
  }

  // In both orders.
  @OnWorkerEvent('completed')
  @DistributedLock({ key: (job: Job) => key`patient:${job.data.id}`, waitMs: 0 })
  async completed({ data }: Job): Promise<void> {
    this.seen.push(['completed', this.locks.current()?.resource, data.id]);
  }

  @DistributedLock({ key: 'active', mode: 'read' })
  @OnWorkerEvent('active')
  async active(): Promise<void> {
    this.seen.push(['active', this.locks.current()?.resource]);
  }
}

export const seenByJobs: Seen[] = [];

/** Nest makes an object for each job. */
@Processor({ name: 'scoped', scope: Scope.REQUEST })
export class Scoped extends WorkerHost {
  constructor(
    @Inject(REQUEST) private readonly job: Job,
    private readonly locks: RedisLockService,
  ) {
    super();
  }

  @DistributedLock(function (this: Scoped) {
    return key`scoped:${this.job.data.id}`;
  } as () => string)
  async process({ data }: Job): Promise<void> {
    seenByJobs.push([data.id, this.locks.current()?.resource]);
  }
}

/** Fails at first. */
@Processor('retried', { concurrency: 2 })
export class Retried extends WorkerHost {
  readonly order: unknown[] = [];

  @DistributedLock('retried')
  async process({ data, attemptsMade }: Job): Promise<void> {
    this.order.push(data.id);
    if (data.id === 1 && attemptsMade === 0) throw new Error('not yet');
  }
}

/** Ends its first job when the test wants it to. */
@Processor('slow', { concurrency: 1 })
export class Slow extends WorkerHost {
  readonly begun: unknown[] = [];
  readonly errors: string[] = [];
  readonly end = gate();

  @DistributedLock('slow')
  async process({ data }: Job): Promise<void> {
    this.begun.push(data.id);
    await this.end.opened;
  }

  @OnWorkerEvent('failed')
  failed(_job: Job, error: Error): void {
    this.errors.push(error.name);
  }
}

/** As the page says. */
@Processor('slow', { concurrency: 1 })
export class SlowUntilClosed extends Slow {
  async onModuleDestroy(): Promise<void> {
    await this.worker.close();
  }
}
