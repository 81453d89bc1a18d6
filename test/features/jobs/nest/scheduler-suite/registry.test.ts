// The cases of tests/e2e of @nestjs/schedule 6.1.2 (MIT), with decorators imported from this package and locks in memory.
import { jest } from '@jest/globals';
import { Injectable, Scope } from '@nestjs/common';
import * as nest from '@nestjs/schedule';
import { CronJob } from 'cron';
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
    type: 'cron',
    title: 'cron job',
    named: [CronService, 'cron'],
    decorate: (name?: string) => Cron(CronExpression.EVERY_SECOND, { name }),
    off: { cronJobs: false },
    add: (registry: SchedulerRegistry) =>
      registry.addCronJob('added', new CronJob(CronExpression.EVERY_SECOND, () => {})),
    remove: (registry: SchedulerRegistry) => registry.deleteCronJob('added'),
    names: (registry: SchedulerRegistry) => [...registry.getCronJobs().keys()],
  },
  {
    type: 'interval',
    title: 'interval',
    named: [IntervalService, 'interval'],
    decorate: (name?: string) => (name === undefined ? Interval(2_500) : Interval(name, 2_500)),
    off: { intervals: false },
    add: (registry: SchedulerRegistry) =>
      registry.addInterval(
        'added',
        setInterval(() => {}, 2_500),
      ),
    remove: (registry: SchedulerRegistry) => registry.deleteInterval('added'),
    names: (registry: SchedulerRegistry) => registry.getIntervals(),
  },
  {
    type: 'timeout',
    title: 'timeout',
    named: [TimeoutService, 'timeout'],
    decorate: (name?: string) => (name === undefined ? Timeout(2_500) : Timeout(name, 2_500)),
    off: { timeouts: false },
    add: (registry: SchedulerRegistry) =>
      registry.addTimeout(
        'added',
        setTimeout(() => {}, 2_500),
      ),
    remove: (registry: SchedulerRegistry) => registry.deleteTimeout('added'),
    names: (registry: SchedulerRegistry) => registry.getTimeouts(),
  },
] as const;

describe.each(KINDS)('one $title', ({ type, title, named: [Service, name], decorate, off, add, remove, names }) => {
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

  it('can be added to the registry, and deleted there', async () => {
    const { registry } = await start({ providers: [Service] });
    expect(registry.doesExist(type, 'added')).toBe(false);
    add(registry);
    expect(registry.doesExist(type, 'added')).toBe(true);
    remove(registry);
    expect(() => remove(registry)).toThrow('was found with the given name (added)');
  });

  it('is removed by a shutdown, which leaves no timer', async () => {
    const { app, registry } = await start({ providers: [Service] });
    add(registry);
    await app.close();
    expect([names(registry), jest.getTimerCount()]).toEqual([[], 0]);
  });

  it('does not mind a provider without a prototype', async () => {
    const bare = { provide: 'bare', useValue: Object.create(null) as object };
    await expect(start({ providers: [Service, bare] })).resolves.toBeDefined();
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
