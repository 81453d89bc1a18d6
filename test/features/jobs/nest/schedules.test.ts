import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { CronTime } from 'cron';
import { DateTime } from 'luxon';
import { InvalidLockOptionsError, type LockEvent } from 'nestjs-redis-lock';
import { SingletonCron, type SingletonCronOptions } from 'nestjs-redis-lock/schedule';
import { inMemory, useApps } from '../../../nest/nest-apps.js';
import { eventually, rejection } from '../../../support/expect/eventually.js';
import { useRedis } from '../../../support/redis/redis-server.js';

const SECOND = 1_000;
type TickEvent = Extract<LockEvent, { tick: string }>;

/** The next full second that is at least this far away: long enough for two applications to start, or what is said. */
function inAWhile(ms = 4_000): Date {
  return new Date(Math.ceil((Date.now() + ms) / SECOND) * SECOND);
}

/** A cron expression for this moment of each day, as the clocks of a zone show it. */
function dailyAt(time: Date, zone: string): string {
  const { hour, minute, second } = DateTime.fromJSDate(time, { zone });
  return `${second} ${minute} ${hour} * * *`;
}

describe('a @SingletonCron in two applications', () => {
  const redis = useRedis();
  const start = useApps();
  let keyPrefix: string;
  let prefixes = 0;

  beforeEach(() => {
    keyPrefix = `schedules-${++prefixes}`;
  });

  async function startApp(provider: new () => object) {
    const events: TickEvent[] = [];
    const observers = [(event: LockEvent) => 'tick' in event && events.push(event)];
    const { app, log } = await start({
      imports: [ScheduleModule.forRoot(), inMemory({ connection: redis().url, keyPrefix, observers })],
      providers: [provider],
    });
    const ticks = (type: TickEvent['type'], job: string): string[] =>
      events.filter((event) => event.type === type && event.job === job).map(({ tick }) => tick);
    return { log, ticks, registry: app.get(SchedulerRegistry) };
  }

  it('fires once for the fleet at the time of its zone, its offset, or its date, and at a new time', async () => {
    const first = inAWhile();
    const date = new Date(first.getTime() + 123);
    const ran: string[] = [];
    class Jobs {
      @SingletonCron(dailyAt(first, 'Asia/Tokyo'), { name: 'zone', timeZone: 'Asia/Tokyo' })
      async zone(): Promise<void> {
        ran.push('zone');
      }

      // Without a name of its own: the schedule is read again as the scheduler reads it.
      @SingletonCron(dailyAt(first, 'UTC-03:30'), { utcOffset: -210 })
      async offset(): Promise<void> {
        ran.push('offset');
      }

      @SingletonCron(date, { name: 'date' })
      async date(): Promise<void> {
        ran.push('date');
      }

      // A DateTime of the luxon that `cron` knows.
      @SingletonCron(new CronTime(date).source as DateTime)
      async luxon(): Promise<void> {
        ran.push('luxon');
      }

      @SingletonCron('0 0 0 1 1 *', { name: 'yearly' })
      async yearly(): Promise<void> {}
    }
    const apps = [await startApp(Jobs), await startApp(Jobs)];
    const decided = (job: string): number[] =>
      apps.map(({ ticks }) => ticks('tickFinished', job).length + ticks('tickSkipped', job).length);
    const started = (job: string): string[] => apps.flatMap(({ ticks }) => ticks('tickStarted', job)).sort();
    const all = ['zone', 'Jobs.offset', 'date', 'Jobs.luxon'];
    await eventually(() => expect(all.map(decided)).toEqual(all.map(() => [1, 1])));
    expect(all.map(started)).toEqual([
      [first.toISOString()],
      [first.toISOString()],
      [date.toISOString()],
      [date.toISOString()],
    ]);
    expect(ran.sort()).toEqual(['date', 'luxon', 'offset', 'zone']);

    const next = inAWhile(1_000);
    for (const { registry } of apps) {
      registry.getCronJob('yearly').setTime(new CronTime(dailyAt(next, 'UTC'), 'UTC'));
      const once = registry.getCronJob('date');
      once.setTime(new CronTime(next));
      once.start();
    }
    await eventually(() =>
      expect(['yearly', 'date'].map(decided)).toEqual([
        [1, 1],
        [2, 2],
      ]),
    );
    expect(['yearly', 'date'].map(started)).toEqual([[next.toISOString()], [date.toISOString(), next.toISOString()]]);
    expect(apps.flatMap(({ log }) => [...log.at('error'), ...log.at('warn')])).toEqual([]);
  });

  it('does not fire if it is disabled or stopped, and fires if it is started again', async () => {
    class Jobs {
      @SingletonCron('* * * * * *', { name: 'off', disabled: true })
      async off(): Promise<void> {}

      @SingletonCron('* * * * * *', { name: 'on' })
      async on(): Promise<void> {}
    }
    const [one, two] = [await startApp(Jobs), await startApp(Jobs)];
    await eventually(() =>
      expect(one.ticks('tickFinished', 'on').length + two.ticks('tickFinished', 'on').length).toBeGreaterThan(0),
    );
    void one.registry.getCronJob('on').stop();
    // All earlier ticks are decided by then.
    await eventually(() => expect(two.ticks('tickStarted', 'on').length).toBeGreaterThan(0));
    const seen = [one.ticks('tickStarted', 'on').length, two.ticks('tickStarted', 'on').length] as const;
    await eventually(() => expect(two.ticks('tickFinished', 'on').length).toBeGreaterThan(seen[1] + 1));
    expect(one.ticks('tickStarted', 'on')).toHaveLength(seen[0]);

    expect([...one.ticks('tickStarted', 'off'), ...two.ticks('tickStarted', 'off')]).toEqual([]);
    one.registry.getCronJob('off').start();
    await eventually(() => expect(one.ticks('tickFinished', 'off').length).toBeGreaterThan(0));
    expect(two.ticks('tickStarted', 'off')).toEqual([]);
  });
});

describe('singleton jobs without a name', () => {
  const redis = useRedis();
  const start = useApps();

  class Reports {
    @SingletonCron('0 0 0 1 1 *')
    async yearly(): Promise<void> {}

    @SingletonCron('0 0 0 1 1 *', { name: 'named' })
    async named(): Promise<void> {}

    @SingletonCron('0 0 0 1 1 *', { service: 'billing' })
    async elsewhere(): Promise<void> {}
  }

  async function warnings(keyPrefix: string | undefined, connection = redis().url): Promise<string[]> {
    const billing = inMemory({ service: 'billing', connection, keyPrefix: 'billing' });
    const imports = [ScheduleModule.forRoot(), inMemory({ connection, keyPrefix }), billing];
    const { log } = await start({ imports, providers: [Reports] });
    return log.at('warn').filter((line) => line.includes('no name'));
  }

  it('cause a warning, once for an application, if others may have the same name: with the default keyPrefix', async () => {
    expect(await warnings(undefined)).toEqual([
      expect.stringMatching(/^A singleton job has no name: "Reports\.yearly"\. .* name, or .* keyPrefix of its own\.$/),
    ]);
  });

  it('cause none with a keyPrefix of its own, or without a Redis', async () => {
    expect(await warnings('shop')).toEqual([]);
    expect(await warnings(undefined, 'memory:')).toEqual([]);
  });
});

describe("a @SingletonCron with connection: 'memory:'", () => {
  const start = useApps();

  it('runs every tick, one after another, and waits for a run at the shutdown', async () => {
    let running = 0;
    let most = 0;
    let ended = 0;
    @Injectable()
    class Jobs {
      @SingletonCron('* * * * * *', { overlap: 'wait' })
      async run(): Promise<void> {
        most = Math.max(most, ++running);
        await sleep(1_200);
        running--;
        ended++;
      }
    }
    const imports = [ScheduleModule.forRoot(), inMemory({ shutdown: { drainMs: 10_000 } })];
    const { app, log } = await start({ imports, providers: [Jobs] });
    await eventually(() => expect([ended > 0, running]).toEqual([true, 1]));
    const endedBefore = ended;
    await app.close();
    expect([running, most, ended]).toEqual([0, 1, endedBefore + 1]);
    expect(log.at('error')).toEqual([]);
  });
});

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
    ['a text', 'every monday', {}, '"every monday". The package cron reports: "Unknown alias: eve".'],
    ['too few fields', '0 0', {}, '"0 0". The package cron reports: "Too few fields".'],
    ['a field out of range', '61 * * * * *', {}, 'is out of range'],
    ['no tick at all', '0 0 30 2 *', {}, '"0 0 30 2 *". The package cron reports: "Something went wrong.'],
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
