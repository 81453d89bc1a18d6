import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { SingletonCron, type SingletonRun } from 'nestjs-redis-lock/schedule';
import { Database } from '../database/database.js';
import { RunBook } from '../run-book/run-book.js';
import { settings } from '../settings.js';

export interface Report {
  tick: string;
  instance: string;
  pages: number;
  finished: boolean;
}

const PAGES = 5;

/** A job that takes a while, and has to be there in the morning. */
@Injectable()
export class NightlyReportService {
  constructor(
    private readonly database: Database,
    private readonly runBook: RunBook,
  ) {}

  /**
   * If the writing instance dies, another one takes over within a lease. So the job may run twice, and must be
   * idempotent: a rerun begins a new report of the same tick.
   */
  @SingletonCron(settings.reportSchedule, {
    name: 'nightly-report',
    timeZone: 'Europe/Vienna',
    leaseMs: 2_000,
    onCrash: 'retry',
  })
  async write(run: SingletonRun): Promise<void> {
    const { tick, lease } = run;
    await this.runBook.write(run);
    for (let pages = 1; pages <= PAGES; pages++) {
      await sleep(settings.reportPageMs, undefined, { signal: lease.signal });
      const report: Report = { tick, instance: settings.instance, pages, finished: pages === PAGES };
      await this.database.setJson('report', report);
    }
  }

  latest(): Promise<Report | undefined> {
    return this.database.json('report');
  }
}
