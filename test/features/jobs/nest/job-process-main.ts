// What runs in a JobProcess (job-process.ts): an application with one singleton job. Sends what happens to its parent.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import type { LockEvent } from '../../../../lib/kernel/events/events.js';
import { SingletonRuns } from '../../../../lib/features/jobs/core/singleton-runs.js';
import { RedisLockModule } from '../../../../lib/nest/module/redis-lock.module.js';
import { RedisLockService } from '../../../../lib/nest/redis-lock.service.js';
import {
  SingletonCron,
  type SingletonCronOptions,
} from '../../../../lib/features/jobs/nest/singleton-cron.decorator.js';
import { SingletonInterval, SingletonTimeout } from '../../../../lib/features/jobs/nest/singleton-timed.decorators.js';

/** What the application is to do. */
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
  /** Whether it tells of each tick that it asks for. */
  readonly tellsAsked?: boolean;
  /** Whether it is killed when it has accounted missed ticks: before it runs for them. */
  readonly diesOnMissed?: boolean;
}

/** What it tells. `at`: the true time, whatever the wall clock of the process says. */
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
      // A machine that is busy starting others is no reason to warn that Redis is away.
      attemptTimeoutMs: 10_000,
      keyPrefix: setup.keyPrefix,
      observers: [
        (event) => {
          if ('tick' in event || event.type === 'tickMissed') tell(event);
          if (event.type === 'tickMissed' && setup.diesOnMissed) process.kill(process.pid, 'SIGKILL');
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
