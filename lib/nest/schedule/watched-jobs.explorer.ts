import type { OnApplicationBootstrap, OnModuleInit } from '@nestjs/common';
import { quote } from '../../core/util/quoted.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { partsOf } from '../service-parts.js';
import { checkMissedIsKept, watchJob } from './job-watch.js';
import { callManually } from './run-job.js';
import type { DecoratedJob, SingletonJobExplorer } from './singleton-job.explorer.js';

/** Watches the decorated jobs of an application once it has started. One for each lock service. */
export class WatchedJobsExplorer implements OnModuleInit, OnApplicationBootstrap {
  constructor(
    private readonly explorer: SingletonJobExplorer,
    private readonly service: RedisLockService,
  ) {}

  onModuleInit(): void {
    const watch = partsOf(this.service)?.jobs;
    for (const { name, where, options } of this.explorer.jobs.values()) {
      checkMissedIsKept(watch, options.missed.onMissed, `The job ${quote(name)} (${where})`);
    }
  }

  onApplicationBootstrap(): void {
    const watch = partsOf(this.service)?.jobs;
    if (!watch) return;
    for (const job of this.explorer.jobs.values())
      watchJob(watch, { ...job, runOwed: ({ tick }) => runOwed(job, tick) });
    watch.missed.start();
  }
}

/** Calls the method, so that other decorators above do their part. */
async function runOwed({ name, call, schedule }: DecoratedJob, tick: string): Promise<void> {
  await callManually(name, tick, call, { owed: { tick, schedule: schedule?.() } });
}
