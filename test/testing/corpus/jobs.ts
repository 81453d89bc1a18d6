import { Injectable } from '@nestjs/common';
import { DistributedLock, RedisLockService, type SingletonRunOptions } from 'nestjs-redis-lock';
import { raceCase } from './race-case.js';

/** Where invoices are written. */
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

const JOB = { onCrash: 'skip', keepMs: 86_400_000, lock: {} } satisfies Partial<SingletonRunOptions>;

interface Billing {
  /** What the schedule of each instance calls on the first of a month. */
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

/** A report that is built from nothing, row by row, and must not be built by two at once. */
class Report {
  #builders = 0;
  #wasMixed = false;

  reset(): void {
    this.#builders = 0;
    this.#wasMixed = false;
  }

  async begin(): Promise<void> {
    if (++this.#builders > 1) this.#wasMixed = true;
  }

  async finish(): Promise<void> {
    this.#builders--;
  }

  get wasMixed(): boolean {
    return this.#wasMixed;
  }
}

interface Reports {
  build(tick: string): Promise<void>;
}

@Injectable()
class ReportsOverlap implements Reports {
  constructor(
    private readonly locks: RedisLockService,
    private readonly report: Report,
  ) {}

  async build(tick: string): Promise<void> {
    await this.locks.runSingleton({ ...JOB, job: `report ${tick}`, tick, overlap: 'wait' }, async () => {
      await this.report.begin();
      await this.report.finish();
    });
  }
}

@Injectable()
class MendedReports implements Reports {
  constructor(
    private readonly locks: RedisLockService,
    private readonly report: Report,
  ) {}

  async build(tick: string): Promise<void> {
    await this.locks.runSingleton({ ...JOB, job: 'report', tick, overlap: 'wait' }, async () => {
      await this.report.begin();
      await this.report.finish();
    });
  }
}

export const ticksOverlap = raceCase<Reports, Report>({
  bug: 'Ticks of a cron job that overlap',
  broken: ReportsOverlap,
  mended: MendedReports,
  repository: Report,
  reads: [],
  actors: { A: ({ service }) => service.build('12:00'), B: ({ service }) => service.build('12:01') },
  invariant: ({ repository }) => (repository.wasMixed ? 'two reports in one file' : undefined),
  story: /A Report.begin\(\); .*B Report.begin\(\).*: two reports in one file$/,
});
