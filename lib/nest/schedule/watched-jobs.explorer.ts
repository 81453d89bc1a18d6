import type { OnApplicationBootstrap, OnModuleInit } from '@nestjs/common';
import { quote } from '../../core/util/quoted.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { partsOf } from '../service-parts.js';
import { checkMissedIsKept, watchJob } from './job-watch.js';
import type { SingletonJobExplorer } from './singleton-job.explorer.js';

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
    for (const job of this.explorer.jobs.values()) watchJob(this.service, job);
    watch.missed.start();
  }
}
