// The program of a JobProcess (job-process.ts): an application with one singleton job. Sends its events to its parent.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { LockEvent } from '../../../../lib/kernel/events/events.js';
import { SingletonRuns } from '../../../../lib/features/jobs/core/singleton-runs.js';
import { RedisLockModule } from '../../../../lib/nest/module/redis-lock.module.js';
import { RedisLockService } from '../../../../lib/nest/redis-lock.service.js';
import {
  ScheduleModule,
  SingletonCron,
  type SingletonCronOptions,
  SingletonInterval,
  SingletonTimeout,
} from '../../../../lib/schedule.js';

/** The settings of the application. */
export interface JobSetup {
  readonly url: string;
  readonly keyPrefix: string;
  readonly kind: 'cron' | 'interval' | 'timeout';
  /** Of the interval or the time-out. */
  readonly everyMs?: number;
  readonly jobLastsMs: number;
  /** Of the cron job. @default every second */
  readonly cronTime?: string;
  readonly options?: Pick<
    SingletonCronOptions,
    'onCrash' | 'overlap' | 'leaseMs' | 'waitMs' | 'maxClockSkewMs' | 'timeZone' | 'graceMs' | 'onMissed'
  >;
  /** `true` to report each tick that it asks for. */
  readonly tellsAsked?: boolean;
}

/** The reports. `at` is the true time, whatever the wall clock of the process shows. */
export type JobMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'asked'; readonly tick: string }
  | { readonly type: 'began'; readonly at: number; readonly fencingToken: number }
  | { readonly type: 'ended'; readonly at: number; readonly fencingToken: number }
  | Extract<LockEvent, { tick: string }>
  | Extract<LockEvent, { type: 'tickMissed' }>;

const setup = JSON.parse(process.argv[2]!) as JobSetup;
const { everyMs = 1_000, options: { onCrash, maxClockSkewMs, timeZone, graceMs, onMissed, ...options } = {} } = setup;
const ofTick = { onCrash, maxClockSkewMs, timeZone, graceMs, onMissed };

function tell(message: JobMessage): void {
  process.send!(message);
}

@Injectable()
class Job {
  constructor(private readonly locks: RedisLockService) {}

  protected async work(): Promise<void> {
    const { fencingToken } = this.locks.current()!;
    const at = (): number => performance.timeOrigin + performance.now();
    tell({ type: 'began', at: at(), fencingToken });
    await sleep(setup.jobLastsMs);
    tell({ type: 'ended', at: at(), fencingToken });
  }
}

@Injectable()
class CronJob extends Job {
  @SingletonCron(setup.cronTime ?? '* * * * * *', { name: 'job', ...options, ...ofTick })
  async run(): Promise<void> {
    await this.work();
  }
}

@Injectable()
class IntervalJob extends Job {
  @SingletonInterval(everyMs, { name: 'job', ...options })
  async run(): Promise<void> {
    await this.work();
  }
}

@Injectable()
class TimeoutJob extends Job {
  @SingletonTimeout(everyMs, { name: 'job', ...options })
  async run(): Promise<void> {
    await this.work();
  }
}

@Module({
  imports: [
    ScheduleModule.forRoot(),
    RedisLockModule.forRoot({
      connection: setup.url,
      // Avoids warnings that Redis is unreachable while the machine is busy starting other processes.
      attemptTimeoutMs: 10_000,
      keyPrefix: setup.keyPrefix,
      observers: [
        (event) => {
          if ('tick' in event || event.type === 'tickMissed') tell(event);
        },
      ],
    }),
  ],
  providers: [{ cron: CronJob, interval: IntervalJob, timeout: TimeoutJob }[setup.kind]],
})
class AppModule {}

if (setup.tellsAsked) {
  const { run } = SingletonRuns.prototype;
  SingletonRuns.prototype.run = function (options, ...rest) {
    tell({ type: 'asked', tick: options.tick });
    return run.call(this, options, ...rest) as never;
  };
}
// As users have it: errors go to stderr, warnings to stdout.
const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
tell({ type: 'ready' });
