import { Injectable } from '@nestjs/common';
import { DistributedLock, RedisLockService, type SingletonRunOptions } from 'nestjs-redis-lock';
import { raceCase } from './race-case.js';

/** The store of invoices. */
class Invoices {
  readonly #written: string[] = [];

  reset(): void {
    this.#written.length = 0;
  }

  async write(month: string): Promise<void> {
    this.#written.push(month);
  }

  get count(): number {
    return this.#written.length;
  }
}

const JOB = { onCrash: 'skip', claimTtlMs: 86_400_000, lock: {} } satisfies Partial<SingletonRunOptions>;

interface Billing {
  /** Called by each instance's schedule on the first of a month. */
  onFirst(month: string): Promise<void>;
}

@Injectable()
class BillingWithLock implements Billing {
  constructor(private readonly invoices: Invoices) {}

  @DistributedLock('billing')
  async onFirst(month: string): Promise<void> {
    await this.invoices.write(month);
  }
}

@Injectable()
class BillingOncePerTick implements Billing {
  constructor(
    private readonly locks: RedisLockService,
    private readonly invoices: Invoices,
  ) {}

  async onFirst(month: string): Promise<void> {
    await this.locks.runSingleton({ ...JOB, job: 'billing', tick: month, overlap: 'skip' }, () =>
      this.invoices.write(month),
    );
  }
}

export const tickRunTwice = raceCase<Billing, Invoices>({
  bug: 'A cron job with a lock, but without its tick',
  broken: BillingWithLock,
  mended: BillingOncePerTick,
  repository: Invoices,
  reads: [],
  actors: { A: ({ service }) => service.onFirst('2030-01'), B: ({ service }) => service.onFirst('2030-01') },
  invariant: ({ repository }) => (repository.count === 1 ? undefined : 'two invoices'),
  story: /A Invoices.write\("2030-01"\); .*B Invoices.write\("2030-01"\).*: two invoices$/,
});
