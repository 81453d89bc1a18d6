import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DistributedSemaphore, RedisLockService } from 'nestjs-redis-lock';
import { settings } from '../settings.js';
import { TimeClock } from '../time-clock/time-clock.js';

export interface Export {
  customer: string;
  instance: string;
}

const PERMITS = 3;

/** Exports of all that a customer has bought. The archive behind them bears three at once, not three for each instance. */
@Injectable()
export class ExportsService {
  constructor(
    private readonly locks: RedisLockService,
    private readonly timeClock: TimeClock,
  ) {}

  /** The permit of an instance that dies is free again after a lease. One whose lease is lost stops: another one may run. */
  @DistributedSemaphore({ key: 'exports', permits: PERMITS, leaseMs: 2_000 })
  async run(customer: string): Promise<Export> {
    return this.export(customer, this.locks.current('exports')!.signal);
  }

  /** The same without the semaphore, for the demo: as many at once as are asked for. */
  async runWithoutLimit(customer: string): Promise<Export> {
    return this.export(customer);
  }

  /** The number of exports that could start now. */
  free(): Promise<number> {
    return this.locks.semaphore('exports', { permits: PERMITS }).available();
  }

  private export(customer: string, signal?: AbortSignal): Promise<Export> {
    return this.timeClock.during(signal ? 'exports' : 'exports-without-limit', async () => {
      await sleep(settings.exportMs, undefined, { signal });
      return { customer, instance: settings.instance };
    });
  }
}
