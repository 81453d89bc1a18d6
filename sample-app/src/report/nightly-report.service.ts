import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';
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
    private readonly locks: RedisLockService,
    private readonly database: Database,
    private readonly runBook: RunBook,
  ) {}

  /**
   * If the instance that writes it dies, another one writes it, within a lease. So it may begin twice, and has to be fit for
   * that: a rerun begins a new report of the same tick.
   */
  @SingletonCron(settings.reportSchedule, {
    name: 'nightly-report',
    timeZone: 'Europe/Vienna',
    leaseMs: 2_000,
    onCrash: 'retry',
  })
  async write(): Promise<void> {
    const { signal } = this.locks.current()!;
    const { tick, instance } = await this.runBook.write('nightly-report');
    for (let pages = 1; pages <= PAGES; pages++) {
      await sleep(settings.reportPageMs, undefined, { signal });
      await this.database.setJson('report', { tick, instance, pages, finished: pages === PAGES } satisfies Report);
    }
  }

  latest(): Promise<Report | undefined> {
    return this.database.json('report');
  }
}
