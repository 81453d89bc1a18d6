import { jest } from '@jest/globals';
import type { OnModuleInit } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { CronTime } from 'cron';
import { DateTime } from 'luxon';
import { InvalidLockOptionsError } from 'nestjs-redis-lock';
import { SingletonCron, type SingletonCronOptions } from 'nestjs-redis-lock/schedule';
import { eventually, rejection } from '../../../support/expect/eventually.js';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

/** The part of `CronJob` that its timer calls. */
interface WithTimer {
  readonly _timeout: { _onTimeout(): void };
}

describe('a decorated job on a date', () => {
  const start = useApps();
  let ran: string[] = [];
  beforeEach(() => (ran = []));
  afterEach(() => jest.restoreAllMocks());

  const jobsAt = (date: Parameters<typeof SingletonCron>[0], options: SingletonCronOptions) => {
    class Jobs {
      @SingletonCron(date, options)
      async run(): Promise<void> {
        ran.push('ran');
      }
    }
    return Jobs;
  };
  const boot = async (...providers: (new () => object)[]) => {
    const { app } = await start({ imports: [ScheduleModule.forRoot(), inMemory()], providers });
    return app.get(SchedulerRegistry);
  };

  it.each([
    ['a Date', (ms: number) => new Date(ms)],
    ['a DateTime of the luxon of cron', (ms: number) => new CronTime(new Date(ms)).source as DateTime],
    ['a DateTime of another luxon', (ms: number) => DateTime.fromMillis(ms, { zone: 'Asia/Tokyo' })],
  ])('runs if the date has passed when its timer fires: %s', async (_, dateOf) => {
    let now = Date.now();
    const due = now + 3_600_000;
    // Blocks the process for 3 ms between two readings of the clock.
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => (now += 3));
    const registry = await boot(jobsAt(dateOf(due) as DateTime, { name: 'once' }));
    const job = registry.getCronJob('once');
    expect(job.isActive).toBe(true);
    now = due;
    clock.mockImplementation(() => now + 1);
    (job as unknown as WithTimer)._timeout._onTimeout();
    await eventually(() => expect(ran).toEqual(['ran']));
    expect(job.isActive).toBe(false);
  });

  it('runs if the date passes while the application starts, once in each class that inherits it', async () => {
    let now = Date.now();
    jest.spyOn(Date, 'now').mockImplementation(() => now);
    const due = new Date(now + 3_600_000);
    class Jobs extends jobsAt(due, {}) implements OnModuleInit {
      onModuleInit(): void {
        now = due.getTime() + 1;
      }
    }
    class Sub extends Jobs {}
    await boot(Jobs, Sub);
    await eventually(() => expect(ran).toEqual(['ran', 'ran']));
  });

  it('in the past is refused when the application starts, with the job, the method and the date', async () => {
    const date = new Date('2020-01-01T00:00:00Z');
    const error = await rejection(boot(jobsAt(date, { name: 'once' })));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toContain('cronTime of the job "once" (Jobs.run) is in the past: 2020-01-01T00:00:00.000Z.');
    // Without a scheduler, or disabled, nothing is due.
    await boot(jobsAt(date, { name: 'once', disabled: true }));
    await start({ imports: [ScheduleModule.forRoot({ cronJobs: false }), inMemory()], providers: [jobsAt(date, {})] });
    await start({ imports: [inMemory()], providers: [jobsAt(date, {})] });
  });

  it('does not start while it is disabled, and accepts no initialDelay', async () => {
    const date = new Date(Date.now() + 3_600_000);
    const registry = await boot(jobsAt(date, { name: 'off', disabled: true }));
    expect(registry.getCronJob('off').isActive).toBe(false);
    expect(() => jobsAt(date, { initialDelay: 5 } as SingletonCronOptions)).toThrow(
      'initialDelay in the schedule of Jobs.run needs a cron expression',
    );
  });

  it('does not affect other jobs of the registry', async () => {
    const registry = await boot(jobsAt(new Date(Date.now() + 3_600_000), {}));
    const { CronJob } = await import('cron');
    const past = new CronJob(new Date(0), () => {});
    registry.addCronJob('past', past);
    expect(past.isActive).toBe(false);
    expect(() => past.start()).toThrow('Date in past');
  });
});

describe('an invalid schedule', () => {
  const define = (cronTime: unknown, options: SingletonCronOptions = {}) => {
    class Jobs {
      @SingletonCron(cronTime as string, options)
      async run(): Promise<void> {}
    }
    return Jobs;
  };

  it.each<[string, unknown, SingletonCronOptions, string]>([
    ['a text', 'every monday', {}, '"every monday". The package cron says: "Unknown alias: eve".'],
    ['too few fields', '0 0', {}, '"0 0". The package cron says: "Too few fields".'],
    ['a field out of range', '61 * * * * *', {}, 'is out of range'],
    ['no tick at all', '0 0 30 2 *', {}, '"0 0 30 2 *". The package cron says: "Something went wrong.'],
    ['a zone', '* * * * *', { timeZone: 'Europe/Wien' }, 'in the time zone "Europe/Wien"'],
    ['a zone without a name', '* * * * *', { timeZone: '' }, "its timeZone is ''. Name a zone"],
    ['an invalid Date', new Date(Number.NaN), {}, 'an invalid Date.'],
    ['no schedule', undefined, {}, 'It must be a cron expression, a Date or a DateTime of luxon.'],
    ['a number', 5_000, {}, '5000. It must be a cron expression'],
  ])('is refused when the class is defined, with method and text: %s', (_, cronTime, options, said) => {
    expect(() => define(cronTime, options)).toThrow(InvalidLockOptionsError);
    expect(() => define(cronTime, options)).toThrow('cronTime of Jobs.run cannot be scheduled: ');
    expect(() => define(cronTime, options)).toThrow(said);
  });

  it('is refused with the name of the job, if it has one', () => {
    expect(() => define('0 0', { name: 'nightly' })).toThrow(
      'cronTime of the job "nightly" (Jobs.run) cannot be scheduled: "0 0".',
    );
  });

  it('may have no tick while it is disabled', () => {
    expect(() => define('0 0 30 2 *', { disabled: true })).not.toThrow();
  });
});
