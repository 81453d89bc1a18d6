import { jest } from '@jest/globals';
import { Injectable, Scope } from '@nestjs/common';
import * as nest from '@nestjs/schedule';
import {
  Cron,
  CronExpression,
  Interval,
  ScheduleModule,
  SchedulerRegistry,
  SingletonCron,
  SingletonInterval,
  SingletonTimeout,
  Timeout,
} from 'nestjs-redis-lock/schedule';
import { rejection } from '../../../../support/expect/eventually.js';
import { pass, useSchedulers } from './schedulers.js';

// The cases of tests/e2e of @nestjs/schedule 6.1.2 (MIT), with decorators imported from this package and locks in memory.

describe('@Cron', () => {
  const SECOND = 1_000;
  const MINUTE = 60 * SECOND;
  const HOUR = 60 * MINUTE;

  @Injectable()
  class CronService {
    calls = 0;
    finished = 0;
    delayedCalls = 0;
    dynamicCalls = 0;

    constructor(private readonly registry: SchedulerRegistry) {}

    @Cron(CronExpression.EVERY_SECOND, { name: 'second', utcOffset: 0 })
    everySecond() {
      this.#callUpTo(3, 'second');
    }

    @Cron(CronExpression.EVERY_30_SECONDS, { name: 'half-minute', utcOffset: 0 })
    everyHalfMinute() {
      this.#callUpTo(1, 'half-minute');
    }

    @Cron(CronExpression.EVERY_MINUTE, { name: 'minute', utcOffset: 0 })
    everyMinute() {
      this.#callUpTo(3, 'minute');
    }

    @Cron(CronExpression.EVERY_HOUR, { name: 'hour', utcOffset: 0 })
    everyHour() {
      this.#callUpTo(3, 'hour');
    }

    @Cron(CronExpression.EVERY_30_SECONDS, { name: 'disabled', disabled: true, utcOffset: 0 })
    disabled() {}

    @Cron(CronExpression.EVERY_SECOND, { name: 'delayed', initialDelay: 5 * SECOND, utcOffset: 0 })
    delayed() {
      this.delayedCalls++;
    }

    @Cron(CronExpression.EVERY_SECOND, { name: 'disabled and delayed', disabled: true, initialDelay: SECOND })
    disabledAndDelayed() {
      this.delayedCalls++;
    }

    @Cron(CronExpression.EVERY_MINUTE, { name: 'long', waitForCompletion: true, utcOffset: 0 })
    async long() {
      this.calls++;
      await new Promise((resolve) => setTimeout(resolve, 61 * SECOND));
      this.finished++;
      if (this.calls > 2) void this.registry.getCronJob('long').stop();
    }

    #callUpTo(times: number, job: string): void {
      if (++this.calls >= times) void this.registry.getCronJob(job).stop();
    }
  }

  const start = useSchedulers();

  /** Starts it with this job only. */
  async function startWith(name: string) {
    const { app, registry } = await start({ providers: [CronService] });
    for (const other of registry.getCronJobs().keys()) if (other !== name) registry.deleteCronJob(other);
    return { app, service: app.get(CronService), job: registry.getCronJob(name) };
  }

  it.each([
    ['second', 3, SECOND],
    ['half-minute', 1, 30 * SECOND],
    ['minute', 3, MINUTE],
    ['hour', 3, HOUR],
  ])('runs once per %s, until its job is stopped', async (name, times, everyMs) => {
    const { service, job } = await startWith(name);
    await pass(times * everyMs);
    expect(service.calls).toBe(times);
    expect(job.lastDate()).toEqual(new Date(Date.UTC(2020, 0, 1) + times * everyMs));
    await pass(2 * everyMs);
    expect([service.calls, job.isActive]).toEqual([times, false]);
  });

  it('runs beside the other jobs of its class', async () => {
    const { app } = await start({ providers: [CronService] });
    await pass(3 * SECOND);
    expect(app.get(CronService).calls).toBe(3);
  });

  it('waits for its completion, and skips the ticks that are due before', async () => {
    const { service, job } = await startWith('long');
    const seen: [calls: number, finished: number][] = [];
    for (let minute = 1; minute <= 6; minute++) {
      await pass(minute === 1 ? MINUTE : MINUTE - SECOND);
      seen.push([service.calls, service.finished]);
      await pass(SECOND);
      seen.push([service.calls, service.finished]);
    }
    const firstRun = [
      [1, 0],
      [1, 0],
      [1, 0],
      [1, 1],
    ];
    expect(seen).toEqual([0, 1, 2].flatMap((runs) => firstRun.map(([calls, ended]) => [calls! + runs, ended! + runs])));
    expect(job.isActive).toBe(false);
  });

  it('does not run while it is disabled', async () => {
    const { app, registry } = await start({ providers: [CronService] });
    expect(registry.getCronJob('disabled').isActive).toBe(false);
    registry.deleteCronJob('delayed');
    await pass(10 * SECOND);
    expect(registry.getCronJob('disabled and delayed').isActive).toBe(false);
    expect(app.get(CronService).delayedCalls).toBe(0);
  });

  it('runs on its schedule after initialDelay, and not before', async () => {
    const { service } = await startWith('delayed');
    await pass(5 * SECOND);
    expect(service.delayedCalls).toBe(0);
    await pass(3 * SECOND);
    expect(service.delayedCalls).toBe(3);
  });

  it('does not start after a shutdown during initialDelay', async () => {
    const { app, service } = await startWith('delayed');
    await pass(2 * SECOND);
    await app.close();
    await pass(10 * SECOND);
    expect(service.delayedCalls).toBe(0);
  });
});

describe('the scheduler registry', () => {
  // The cases of tests/e2e of @nestjs/schedule 6.1.2 (MIT), with decorators imported from this package and locks in memory.
  @Injectable()
  class CronService {
    @Cron(CronExpression.EVERY_SECOND, { name: 'cron' })
    run() {}
  }

  @Injectable()
  class IntervalService {
    calls = 0;

    constructor(private readonly registry: SchedulerRegistry) {}

    @Interval('interval', 2_500)
    run() {
      this.calls++;
      clearInterval(this.registry.getInterval('interval') as NodeJS.Timeout);
    }
  }

  @Injectable()
  class TimeoutService {
    calls = 0;

    @Timeout('timeout', 2_500)
    run() {
      this.calls++;
    }
  }

  it('has the decorators of this package under the names of @nestjs/schedule, and the rest of it as it is', () => {
    expect([Cron, Interval, Timeout]).toEqual([SingletonCron, SingletonInterval, SingletonTimeout]);
    expect([ScheduleModule, SchedulerRegistry]).toEqual([nest.ScheduleModule, nest.SchedulerRegistry]);
    expect(CronExpression).toBe(nest.CronExpression);
  });

  describe.each([
    ['@Interval', IntervalService],
    ['@Timeout', TimeoutService],
  ])('%s', (_, Service) => {
    const start = useSchedulers();

    it('runs after its milliseconds', async () => {
      const { app } = await start({ providers: [Service] });
      await pass(2_499);
      expect(app.get(Service).calls).toBe(0);
      await pass(10_000);
      expect(app.get(Service).calls).toBe(1);
    });
  });

  const KINDS = [
    {
      title: 'cron job',
      named: [CronService, 'cron'],
      decorate: (name?: string) => Cron(CronExpression.EVERY_SECOND, { name }),
      off: { cronJobs: false },
      names: (registry: SchedulerRegistry) => [...registry.getCronJobs().keys()],
    },
    {
      title: 'interval',
      named: [IntervalService, 'interval'],
      decorate: (name?: string) => (name === undefined ? Interval(2_500) : Interval(name, 2_500)),
      off: { intervals: false },
      names: (registry: SchedulerRegistry) => registry.getIntervals(),
    },
    {
      title: 'timeout',
      named: [TimeoutService, 'timeout'],
      decorate: (name?: string) => (name === undefined ? Timeout(2_500) : Timeout(name, 2_500)),
      off: { timeouts: false },
      names: (registry: SchedulerRegistry) => registry.getTimeouts(),
    },
  ] as const;

  describe.each(KINDS)('one $title', ({ title, named: [Service, name], decorate, off, names }) => {
    const start = useSchedulers();

    it('is in the registry by its name, without a warning', async () => {
      const { registry, log } = await start({ providers: [Service] });
      expect(names(registry)).toContain(name);
      expect([...log.at('warn'), ...log.at('error')]).toEqual([]);
    });

    it('is not registered if the module leaves out its kind', async () => {
      const { registry } = await start({ imports: [ScheduleModule.forRoot(off)], providers: [Service] });
      expect(names(registry)).toEqual([]);
    });

    it('is removed by a shutdown, which leaves no timer', async () => {
      const { app, registry } = await start({ providers: [Service] });
      await app.close();
      expect([names(registry), jest.getTimerCount()]).toEqual([[], 0]);
    });

    it('is refused if another class has one of the same name', async () => {
      class First {
        @(decorate('shared') as MethodDecorator)
        async run() {}
      }
      class Second {
        @(decorate('shared') as MethodDecorator)
        async run() {}
      }
      const { message } = await rejection(start({ providers: [First, Second] }));
      expect(message).toContain('Two singleton jobs are called "shared". The second one is Second.run.');
    });

    it('is not registered on a provider that is made for each request, which the scheduler warns of', async () => {
      @Injectable({ scope: Scope.REQUEST })
      class Scoped {
        @(decorate() as MethodDecorator)
        async run() {}
      }
      const { registry, log } = await start({ providers: [Scoped] });
      expect(names(registry)).toEqual([]);
      expect(log.at('warn')).toContain(
        `Cannot register ${title} "Scoped@run" because it is defined in a non static provider.`,
      );
    });
  });
});
