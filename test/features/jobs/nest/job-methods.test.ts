import { Inject, Injectable, Scope, SetMetadata } from '@nestjs/common';
import {
  Cron,
  Interval,
  ScheduleModule,
  type ScheduleModuleOptions,
  SchedulerRegistry,
  Timeout,
} from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import {
  DistributedLock,
  DistributedSemaphore,
  InvalidLockOptionsError,
  LeaderOnly,
  LockModuleMissingError,
  ReadLock,
  RedisLockModule,
  RedisLockService,
  WriteLock,
} from 'nestjs-redis-lock';
import { SingletonCron, SingletonInterval, type SingletonRun, SingletonTimeout } from 'nestjs-redis-lock/schedule';
import { singletonMethod } from '../../../../lib/features/jobs/nest/singleton-method.js';
import { resolveJobOptions, TICK_OPTIONS } from '../../../../lib/features/jobs/nest/singleton-options.js';
import { inMemory, LogBook, useApps } from '../../../nest/nest-apps.js';
import { eventually, rejection } from '../../../support/expect/eventually.js';

const YEARLY = '0 0 0 1 1 *';

const EVERY_SECOND = '* * * * * *';

/** Sentry replaces `Cron`, so that it wraps the method first, and copies the name alone. */
const replacingSchedule = singletonMethod('SingletonCron', (where) => ({
  options: resolveJobOptions({ name: 'report' }, where, TICK_OPTIONS),
  schedule: (target, name, descriptor: PropertyDescriptor) => {
    const original = descriptor.value as (...args: unknown[]) => unknown;
    descriptor.value = function (...args: unknown[]): unknown {
      return original.apply(this, args);
    };
    Cron(YEARLY)(target, name, descriptor);
  },
  ticks: { now: () => ({ tick: 'once', claimTtlMs: 1_000 }) },
}));

describe('the method of a singleton job', () => {
  const start = useApps();

  async function startJobs<T extends object>(...providers: (new (...args: never[]) => T)[]) {
    const { app, log } = await start({ imports: [ScheduleModule.forRoot(), inMemory()], providers });
    return { app, log, jobs: app.get(providers[0]!), registry: app.get(SchedulerRegistry) };
  }

  it.each([
    ['SingletonCron', (options: never) => SingletonCron(YEARLY, options)],
    ['SingletonInterval', (options: never) => SingletonInterval(200, options)],
    ['SingletonTimeout', (options: never) => SingletonTimeout(200, options)],
  ])('accepts an object as options, and is refused when the class is defined otherwise: %s', (_, decorate) => {
    for (const options of [null, 'nightly', 5]) {
      const define = () => {
        class Jobs {
          @decorate(options as never)
          async run(): Promise<void> {}
        }
        return Jobs;
      };
      expect(define).toThrow(InvalidLockOptionsError);
      expect(define).toThrow('The schedule of Jobs.run must be an object');
    }
  });

  it('looks unchanged to reflection, and decorators work above and below', async () => {
    const ran: string[] = [];
    @Injectable()
    class Jobs {
      constructor(readonly locks: RedisLockService) {}

      @SingletonCron(EVERY_SECOND, { name: 'above' })
      @SetMetadata('note', 'below it')
      @DistributedLock('report')
      async above(): Promise<void> {
        ran.push(`above ${this.locks.current('report')?.resource} ${this.locks.current('cron:above')?.resource}`);
      }

      @DistributedLock('report')
      @SetMetadata('note', 'above it')
      @SingletonInterval(200, { name: 'below' })
      async below(): Promise<void> {
        ran.push(`below ${this.locks.current('report')?.resource} ${this.locks.current('cron:below')?.resource}`);
      }
    }
    const { registry, log } = await startJobs(Jobs);
    expect(registry.getCronJobs().size).toBe(1);
    expect(registry.getIntervals()).toEqual(['below']);
    for (const [name, note] of [
      ['above', 'below it'],
      ['below', 'above it'],
    ] as const) {
      const method = Jobs.prototype[name];
      expect([method.name, method.length, Reflect.getMetadata('note', method)]).toEqual([name, 0, note]);
    }
    await eventually(() => {
      expect(new Set(ran)).toEqual(new Set(['above report cron:above', 'below report cron:below']));
    });
    expect(log.at('error')).toEqual([]);
  });

  it('keeps its metadata if the decorator of the scheduler replaces the method, as under Sentry', async () => {
    class Jobs {
      readonly runs: string[] = [];

      @replacingSchedule
      @SetMetadata('note', 'below it')
      async report(): Promise<void> {
        this.runs.push('report');
      }

      @replacingSchedule
      async again(): Promise<void> {}
    }
    expect(Reflect.getMetadata('note', Jobs.prototype.report)).toBe('below it');
    // Its explorer still finds the jobs, and that two have one name.
    expect((await rejection(startJobs(Jobs))).message).toContain('Two singleton jobs are called "report"');
  });

  it('receives its job, its tick, and its lease', async () => {
    const dueAt = new Date(Math.floor(Date.now() / 1_000) * 1_000);
    const runs: SingletonRun[] = [];
    class Jobs {
      @SingletonCron(dueAt, { name: 'report' })
      async report(run: SingletonRun): Promise<void> {
        expect(run.lease.isHeld()).toBe(true);
        runs.push(run);
      }
    }
    const { app } = await start({ imports: [inMemory()], providers: [Jobs] });
    // By hand, as the scheduler would call it: without an argument.
    await (app.get(Jobs) as unknown as { report(): Promise<void> }).report();
    expect(runs).toEqual([
      { job: 'report', tick: dueAt.toISOString(), rerun: false, attempt: 1, manual: false, lease: expect.anything() },
    ]);
    expect(runs[0]!.lease.resource).toBe('cron:report');
  });

  it('called manually counts as the tick that was due last: it runs once', async () => {
    const now = new Date();
    class Jobs {
      runs = 0;

      // It was due within the last minute.
      @SingletonCron(`0 ${now.getUTCMinutes()} ${now.getUTCHours()} * * *`, { timeZone: 'UTC' })
      async daily(): Promise<number | undefined> {
        return ++this.runs;
      }
    }
    const { jobs } = await startJobs(Jobs);
    expect(await jobs.daily()).toBe(1);
    expect(await jobs.daily()).toBeUndefined();
    expect(jobs.runs).toBe(1);
  });

  it('called manually long after the tick that was due last does not run: that tick may have run and be forgotten', async () => {
    class Jobs {
      @SingletonCron(YEARLY, { name: 'yearly' })
      async yearly(): Promise<string | undefined> {
        return 'ran';
      }
    }
    const { jobs, log } = await startJobs(Jobs);
    expect(await jobs.yearly()).toBeUndefined();
    expect(log.at('debug')).toEqual([
      expect.stringMatching(
        /^Tick \S+ of job "yearly" is skipped: it is \d+ ms late by the clock of Redis, later than maxClockSkewMs/,
      ),
    ]);
    expect(log.at('warn')).toEqual([]);
  });

  it('works on a class without the ScheduleModule, where nothing fires', async () => {
    class Jobs {
      @SingletonCron(YEARLY)
      async yearly(): Promise<string | undefined> {
        return 'ran';
      }
    }
    const { app } = await start({ imports: [inMemory()], providers: [Jobs] });
    expect(await app.get(Jobs).yearly()).toBe('ran');
  });

  it('needs the lock module, and an object that Nest made', async () => {
    class Jobs {
      @SingletonCron(YEARLY)
      async yearly(): Promise<void> {}
    }
    expect(await rejection(new Jobs().yearly())).toBeInstanceOf(LockModuleMissingError);
    const boot = start({ imports: [ScheduleModule.forRoot()], providers: [Jobs] });
    expect((await rejection(boot)).message).toContain('import RedisLockModule.forRoot(');
  });

  it('is not registered on a request-scoped provider: Nest warns', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Jobs {
      @SingletonCron(EVERY_SECOND)
      async run(): Promise<void> {}

      @SingletonInterval(1_000)
      async often(): Promise<void> {}

      @SingletonTimeout(1_000)
      async once(): Promise<void> {}
    }
    const { app, log } = await start({ imports: [ScheduleModule.forRoot(), inMemory()], providers: [Jobs] });
    const registry = app.get(SchedulerRegistry);
    expect([registry.getCronJobs().size, registry.getIntervals(), registry.getTimeouts()]).toEqual([0, [], []]);
    expect(log.at('warn')).toEqual([
      expect.stringContaining('Cannot register cron job "Jobs@run"'),
      expect.stringContaining('Cannot register interval "Jobs@often"'),
      expect.stringContaining('Cannot register timeout "Jobs@once"'),
    ]);
  });

  it('that fails is logged by the scheduler, with its own error', async () => {
    class Jobs {
      @SingletonTimeout(0)
      async fail(): Promise<void> {
        throw new TypeError('no toner');
      }
    }
    const { log } = await startJobs(Jobs);
    await eventually(() => expect(log.at('error')).toEqual(['TypeError: no toner']));
  });

  it('may be sync: it runs under its lock, and its error is logged by the scheduler', async () => {
    const ran: unknown[] = [];
    class Jobs {
      constructor(readonly locks: RedisLockService) {}

      @SingletonTimeout('sync', 0)
      run(run: SingletonRun): void {
        ran.push([run.job, this.locks.current('cron:sync')?.isHeld()]);
      }

      @SingletonTimeout('fails', 0)
      fail(): void {
        throw new TypeError('no toner');
      }
    }
    Inject(RedisLockService)(Jobs, undefined, 0);
    const { jobs, log } = await startJobs(Jobs);
    await eventually(() => expect(log.at('error')).toEqual(['TypeError: no toner']));
    await eventually(() => expect(ran).toEqual([['sync', true]]));
    // A call by hand returns a promise, of nothing, as the tick has run.
    const call = (jobs as unknown as { run(): unknown }).run();
    expect(call).toBeInstanceOf(Promise);
    expect(await call).toBeUndefined();
    expect(ran).toHaveLength(1);
  });

  it('is a job of its own in a subclass, which may override it and call super', async () => {
    const ran: string[] = [];
    class Base {
      @SingletonTimeout(0)
      async inherited(): Promise<void> {
        ran.push(`inherited by ${this.constructor.name}`);
      }

      @SingletonTimeout(0)
      async overridden(): Promise<void> {
        ran.push(`overridden in ${this.constructor.name}`);
      }
    }
    class Sub extends Base {
      override async overridden(): Promise<void> {
        await super.overridden();
        ran.push('after super');
      }
    }
    const { app } = await startJobs(Base, Sub);
    await eventually(() => expect(ran.sort()).toEqual(['inherited by Base', 'inherited by Sub', 'overridden in Base']));
    // Without a decorator of its own it is no job for the scheduler, but still one when it is called.
    await app.get(Sub).overridden();
    await app.get(Sub).overridden();
    expect(ran.filter((entry) => /Sub$|super/.test(entry))).toEqual([
      'inherited by Sub',
      'overridden in Sub',
      'after super',
      'after super',
    ]);
  });
});

describe('two singleton jobs of one name', () => {
  const start = useApps();
  const boot = (...providers: (new () => object)[]) =>
    start({ imports: [ScheduleModule.forRoot(), inMemory()], providers });

  class Reports {
    @SingletonCron(YEARLY, { name: 'nightly' })
    async cron(): Promise<void> {}
  }

  it('are refused at boot: they would take each others ticks', async () => {
    class Draws {
      @SingletonInterval(60_000, { name: 'nightly' })
      async interval(): Promise<void> {}
    }
    const error = await rejection(boot(Reports, Draws));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toContain('Two singleton jobs are called "nightly". The second one is Draws.interval');
  });

  it('are refused before waiting for Redis', async () => {
    class Draws {
      @SingletonInterval(60_000, { name: 'nightly' })
      async interval(): Promise<void> {}
    }
    const log = new LogBook();
    const away = RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:1' });
    const metadata = { imports: [ScheduleModule.forRoot(), away], providers: [Reports, Draws] };
    await expect(Test.createTestingModule(metadata).setLogger(log).compile()).rejects.toThrow(
      'Two singleton jobs are called "nightly"',
    );
    expect(log.at('warn')).toEqual([]);
    // It looks for Redis all the same, and what it says then is nothing for the log of another test.
    await eventually(() => expect(log.at('warn')).toEqual([expect.stringContaining('not connected to Redis')]));
  });

  it('are refused at boot if two classes have the same name', async () => {
    const twin = (): new () => object => {
      class Twins {
        @SingletonCron(YEARLY)
        async run(): Promise<void> {}
      }
      return Twins;
    };
    await expect(boot(twin(), twin())).rejects.toThrow('Two singleton jobs are called "Twins.run"');
  });

  it.each([
    ['behind it', (job: new () => object, plain: new () => object) => [job, plain]],
    ['before it', (job: new () => object, plain: new () => object) => [plain, job]],
  ])('are refused at boot if one is a plain @Cron %s: both methods are named', async (_, order) => {
    class Plain {
      @Cron(YEARLY, { name: 'nightly' })
      async sum(): Promise<void> {}
    }
    const error = await rejection(boot(...order(Reports, Plain)));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toMatch(
      /^Reports\.\w+ is a singleton job called "nightly", and Plain\.sum is a @Cron of the same name\. .*Give one of them another name\./,
    );
  });

  it('are allowed if the scheduler distinguishes them: a job and an interval', async () => {
    class Plain {
      @Interval('nightly', 60_000)
      sum(): void {}
    }
    const { log } = await boot(Reports, Plain);
    expect(log.at('error')).toEqual([]);
  });

  it('are allowed if one is a plain @Cron without a name, or only the class is the same', async () => {
    class Plain {
      @Cron(YEARLY)
      async cron(): Promise<void> {}
    }
    class Other {
      @SingletonCron(YEARLY)
      async cron(): Promise<void> {}
    }
    const { log } = await boot(Reports, Plain, Other);
    expect(log.at('error')).toEqual([]);
  });
});

@Injectable()
class Reports {
  @Cron(YEARLY)
  @DistributedLock('nightly')
  async nightly(): Promise<void> {}

  @WriteLock('prices')
  @Interval(60_000)
  async prices(): Promise<void> {}

  @Timeout(60_000)
  @ReadLock({ key: 'once', onBusy: 'skip' })
  async once(): Promise<void> {}

  @Cron(YEARLY)
  @DistributedSemaphore({ key: 'exports', permits: 2, minHoldMs: 50_000 })
  async exports(): Promise<void> {}
}

describe('a lock on a method that @nestjs/schedule calls', () => {
  const start = useApps();
  const warnings = async (provider: new () => object, scheduling?: ScheduleModuleOptions, lockService?: string) => {
    const imports = [inMemory(), ...(lockService ? [inMemory({ service: lockService })] : [])];
    if (scheduling) imports.push(ScheduleModule.forRoot(scheduling));
    const { log } = await start({ imports, providers: [provider] });
    return log.at('warn');
  };

  it('causes a warning, which names the method, the problem and the decorator to use', async () => {
    expect(await warnings(Reports, {})).toEqual([
      'Reports.nightly has @Cron and @DistributedLock: every instance runs each tick, and the lock only makes them take ' +
        'turns. To run each tick on one instance, use @SingletonCron of nestjs-redis-lock/schedule in place of both. To ' +
        'keep it as it is, let a method with @Cron call another one with the lock. See docs/guide/cron.md.',
      expect.stringMatching(/^Reports\.prices has @Interval and @WriteLock: .* use @SingletonInterval of /),
      'Reports.once has @Timeout and @ReadLock: if the first run ends before the timer of another instance fires, that instance runs the tick ' +
        'again. To run each tick on one instance, use @SingletonTimeout of nestjs-redis-lock/schedule in place of both, or ' +
        'set minHoldMs to more than the difference between the clocks and timers of two instances. See docs/guide/cron.md.',
      expect.stringMatching(/^Reports\.exports has @Cron and @DistributedSemaphore: .* use @SingletonCron of /),
    ]);
  });

  it('is reported once, however many modules and lock services there are', async () => {
    expect(await warnings(Reports, {}, 'billing')).toHaveLength(4);
  });

  it.each<[string, ScheduleModuleOptions | undefined, number]>([
    ['the ScheduleModule is not imported', undefined, 0],
    ['cron jobs are switched off', { cronJobs: false }, 2],
  ])('causes no warning if nothing calls it: %s', async (_, scheduling, count) => {
    expect(await warnings(Reports, scheduling)).toHaveLength(count);
  });

  it('causes no warning if it runs once: onBusy "skip" with a minHoldMs, a leader, or a singleton job', async () => {
    @Injectable()
    class Right {
      @Cron(YEARLY)
      @DistributedLock({ key: 'a', onBusy: 'skip', minHoldMs: 50_000 })
      async skips(): Promise<void> {}

      @Interval(60_000)
      @LeaderOnly('mails')
      @DistributedLock('b')
      async leads(): Promise<void> {}

      @DistributedLock('c')
      @SingletonCron(YEARLY, { name: 'c' })
      async below(): Promise<void> {}

      @SingletonCron(YEARLY, { name: 'd' })
      @DistributedLock('d')
      async above(): Promise<void> {}

      @DistributedLock('e')
      async called(): Promise<void> {}

      @Cron(YEARLY)
      async calls(): Promise<void> {
        await this.called();
      }
    }
    expect(await warnings(Right, {})).toEqual([]);
  });

  it('causes a warning for a subclass, by the name of the class that has the method, unless that one is overridden', async () => {
    @Injectable()
    class Sub extends Reports {
      override async prices(): Promise<void> {}
      override async once(): Promise<void> {}
      override async exports(): Promise<void> {}
    }
    expect(await warnings(Sub, {})).toEqual([expect.stringMatching(/^Reports\.nightly has @Cron and/)]);
  });
});

describe('an interval or a timeout with a name before its milliseconds', () => {
  const start = useApps();

  it('is a job of that name for the scheduler and the fleet, as in @nestjs/schedule', async () => {
    const ran: string[] = [];
    class Jobs {
      @SingletonInterval('poll', 100)
      async poll({ job }: SingletonRun): Promise<void> {
        ran.push(job);
      }

      @SingletonInterval('wait', 60_000, { overlap: 'wait' })
      async wait(): Promise<void> {}

      @SingletonTimeout('warm', 0, { dedupeWindowMs: 1_000 })
      async warm({ job }: SingletonRun): Promise<void> {
        ran.push(job);
      }
    }
    const { app, log } = await start({ imports: [ScheduleModule.forRoot(), inMemory()], providers: [Jobs] });
    const registry = app.get(SchedulerRegistry);
    expect([registry.getIntervals(), registry.getTimeouts()]).toEqual([['poll', 'wait'], ['warm']]);
    await eventually(() => expect(new Set(ran)).toEqual(new Set(['poll', 'warm'])));
    expect(log.at('warn')).toEqual([]);
  });

  const decorate = (decorator: (...args: never[]) => unknown, ...args: unknown[]) =>
    (decorator as (...args: unknown[]) => unknown)(...args);

  it.each([SingletonInterval, SingletonTimeout])('needs its milliseconds: %p', (decorator) => {
    const unit = decorator === SingletonInterval ? 'intervalMs' : 'timeoutMs';
    expect(() => decorate(decorator, 'poll')).toThrow(`${unit} must be an integer`);
    expect(() => decorate(decorator, 'poll', { overlap: 'wait' })).toThrow(`${unit} must be an integer`);
    expect(() => decorate(decorator, 'poll', '1000')).toThrow(`${unit} must be an integer`);
    expect(() => decorate(decorator)).toThrow(`${unit} must be an integer`);
  });

  it.each([SingletonInterval, SingletonTimeout])('has one name: %p', (decorator) => {
    expect(() => decorate(decorator, 'poll', 1_000, { name: 'other' })).toThrow(
      'The name of a job is given twice: "poll" and "other". Leave it out of the options.',
    );
  });

  it.each([SingletonInterval, SingletonTimeout])(
    'has a valid name, and options that are an object: %p',
    (decorator) => {
      const define = (...args: unknown[]) => {
        class Jobs {
          @(decorate(decorator, ...args) as MethodDecorator)
          async run(): Promise<void> {}
        }
        return Jobs;
      };
      expect(() => define('', 1_000)).toThrow('name must be 1 to 200 characters');
      expect(() => define(1_000, 'poll')).toThrow(
        'The schedule of Jobs.run must be an object, not a text. For the name of the job, write { name: "poll" }',
      );
      for (const options of [null, 'nightly', 5]) {
        expect(() => define('poll', 1_000, options)).toThrow('The schedule of Jobs.run must be an object');
      }
    },
  );
});
