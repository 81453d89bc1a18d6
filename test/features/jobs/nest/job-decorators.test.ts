import {
  type DynamicModule,
  forwardRef,
  Inject,
  Injectable,
  mixin,
  Module,
  type ModuleMetadata,
  Scope,
  SetMetadata,
  type Type,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Cron, Interval, ScheduleModule, Timeout } from '@nestjs/schedule';
import {
  DistributedLock,
  DistributedSemaphore,
  InvalidLockOptionsError,
  LeaderOnly,
  type LockEvent,
  ReadLock,
  RedisLockService,
} from 'nestjs-redis-lock';
import {
  SingletonCron,
  SingletonInterval,
  SingletonJobs,
  type SingletonRun,
  SingletonTimeout,
} from 'nestjs-redis-lock/schedule';
import { inMemory, useApps } from '../../../nest/nest-apps.js';
import { eventually, rejection } from '../../../support/expect/eventually.js';

const YEARLY = '0 0 0 1 1 *';

type Decorate = () => MethodDecorator;
const JOBS: [string, Decorate][] = [
  ['SingletonCron', () => SingletonCron(YEARLY, { name: 'one' }) as MethodDecorator],
  ['SingletonInterval', () => SingletonInterval('one', 60_000) as MethodDecorator],
  ['SingletonTimeout', () => SingletonTimeout('one', 60_000) as MethodDecorator],
];
const PLAIN: [string, Decorate][] = [
  ['Cron', () => Cron(YEARLY)],
  ['Interval', () => Interval(60_000)],
  ['Timeout', () => Timeout(60_000)],
];

describe.each(JOBS)('@%s', (decorator, decorate) => {
  const start = useApps();
  const define = (...decorators: MethodDecorator[]) => {
    class Jobs {
      async run(): Promise<void> {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Jobs.prototype, 'run')!;
    for (const each of decorators.reverse()) each(Jobs.prototype, 'run', descriptor);
    Object.defineProperty(Jobs.prototype, 'run', descriptor);
    return Jobs;
  };
  const refusal = (...decorators: MethodDecorator[]): string => {
    try {
      define(...decorators);
    } catch (error) {
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      return (error as Error).message;
    }
    throw new Error('not refused');
  };

  it.each(JOBS)('is refused above @%s when the class is defined: they would take each others ticks', (below, other) => {
    const message = refusal(decorate(), SetMetadata('note', 'between'), other());
    expect(message).toContain(`Jobs.run: @${decorator} is above @${below}.`);
  });

  it.each(PLAIN)('is refused above @%s when the class is defined', (_, plain) => {
    expect(refusal(decorate(), plain())).toContain(`@${decorator} is above another decorator of @nestjs/schedule`);
  });

  it.each(PLAIN)('is refused below @%s when the application starts: that would win', async (_, plain) => {
    const boot = start({
      imports: [ScheduleModule.forRoot(), inMemory()],
      providers: [define(plain(), DistributedLock('between') as MethodDecorator, decorate())],
    });
    expect((await rejection(boot)).message).toBe(
      `Jobs.run: another decorator of @nestjs/schedule is above @${decorator}, and replaces its ` +
        'schedule. Remove one of them.',
    );
  });

  it.each<[string, MethodDecorator]>([
    ['@LeaderOnly', LeaderOnly('mailer') as MethodDecorator],
    ["@DistributedLock with onBusy: 'skip'", DistributedLock({ key: 'x', onBusy: 'skip' }) as MethodDecorator],
    ["@ReadLock with onBusy: 'skip'", ReadLock({ key: 'x', onBusy: 'skip' }) as MethodDecorator],
    [
      "@DistributedSemaphore with onBusy: 'skip'",
      DistributedSemaphore({ key: 'x', permits: 1, onBusy: 'skip' }) as MethodDecorator,
    ],
  ])('is refused above %s, whose skipped calls would be runs', (name, skipping) => {
    for (const decorators of [[skipping], [DistributedLock('y') as MethodDecorator, skipping]]) {
      expect(refusal(decorate(), ...decorators)).toContain(
        `Jobs.run: @${decorator} is above ${name}, which may return without running the method.`,
      );
    }
    expect(() => define(skipping, decorate())).not.toThrow();
  });

  it('is refused on a method whose name is a symbol: it would never be scheduled', () => {
    const run = Symbol('run');
    const method = { value: async () => {}, configurable: true };
    expect(() => decorate()({}, run, method)).toThrow(InvalidLockOptionsError);
    expect(() => decorate()({}, run, method)).toThrow('Object.Symbol(run): its name is a symbol.');
  });
});

describe('a job below @LeaderOnly', () => {
  const start = useApps();

  it('runs on the leader; a run by hand says why it does not run elsewhere', async () => {
    const ran: string[] = [];
    class Jobs {
      @LeaderOnly('mailer')
      @SingletonCron(YEARLY, { name: 'mails' })
      async run({ job }: SingletonRun): Promise<string | undefined> {
        ran.push(job);
        return 'ran';
      }
    }
    const { app } = await start({ imports: [ScheduleModule.forRoot(), inMemory()], providers: [Jobs] });
    const leadership = app.get(RedisLockService).leadership('mailer')!;
    await leadership.whenElected();
    const jobs = app.get(SingletonJobs);
    expect(await jobs.runNow('mails')).toBe('ran');
    await leadership.resign();
    const error = await rejection(jobs.runNow('mails'));
    expect(error.message).toMatch(/^Jobs\.run was called, but the job did not run: .*@LeaderOnly/);
    expect(ran).toEqual(['mails']);
  });
});

/** A foreign decorator that copies no metadata and so hides the ones below it. */
const Wrapped: MethodDecorator = (_target, _key, descriptor) => {
  const original = descriptor.value as unknown as (...args: unknown[]) => unknown;
  descriptor.value = function (this: unknown, ...args: unknown[]) {
    return original.apply(this, args);
  } as never;
};

describe('a job whose method a decorator below did not run', () => {
  const start = useApps();

  const startJobs = async (Jobs: new () => object) => {
    const outcomes: string[] = [];
    const observers = [(event: LockEvent) => void (event.type === 'tickFinished' && outcomes.push(event.outcome))];
    const { app } = await start({ imports: [ScheduleModule.forRoot(), inMemory({ observers })], providers: [Jobs] });
    return { jobs: app.get(SingletonJobs), locks: app.get(RedisLockService), outcomes };
  };

  it('is reported as an error if @LeaderOnly does not lead, hidden by a decorator in between', async () => {
    let ran = 0;
    class Jobs {
      @SingletonCron(YEARLY, { name: 'mails' })
      @Wrapped
      @LeaderOnly('mailer')
      async run(): Promise<void> {
        ran++;
      }
    }
    const { jobs, locks, outcomes } = await startJobs(Jobs);
    const leadership = locks.leadership('mailer')!;
    await leadership.whenElected();
    await jobs.runNow('mails');
    await leadership.resign();
    const error = await rejection(jobs.runNow('mails'));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toBe(
      'Jobs.run did not run for this tick: @LeaderOnly, which is below @SingletonCron, returned without calling the ' +
        'method. Move it above @SingletonCron and the decorators between the two: then it skips a call before the call claims the tick.',
    );
    expect([ran, ...outcomes]).toEqual([1, 'ok', 'error']);
  });

  it.each<[string, { onBusy: 'skip' | (() => undefined) }]>([
    ["@DistributedLock with onBusy: 'skip'", { onBusy: 'skip' }],
    ['@DistributedLock with a function as onBusy', { onBusy: () => undefined }],
  ])('is reported as an error if %s skips it', async (name, options) => {
    let ran = 0;
    class Jobs {
      @SingletonCron(YEARLY, { name: 'mails' })
      @Wrapped
      @DistributedLock({ key: 'stock', waitMs: 0, ...options })
      async run(): Promise<undefined> {
        ran++;
      }
    }
    const { jobs, locks, outcomes } = await startJobs(Jobs);
    const lease = await locks.acquire('stock');
    expect((await rejection(jobs.runNow('mails'))).message).toContain(`Jobs.run did not run for this tick: ${name}, `);
    await lease.release();
    await jobs.runNow('mails');
    expect([ran, ...outcomes]).toEqual([1, 'error', 'ok']);
  });

  it('has run if a decorator in between has retried, and if another method was skipped', async () => {
    const done: string[] = [];
    const release: (() => Promise<unknown>)[] = [];
    const Again: MethodDecorator = (_target, _key, descriptor) => {
      const original = descriptor.value as unknown as (...args: unknown[]) => Promise<unknown>;
      descriptor.value = async function (this: unknown, ...args: unknown[]) {
        const first = await original.apply(this, args);
        await release.pop()?.();
        return first ?? original.apply(this, args);
      } as never;
    };
    class Base {
      @DistributedLock({ key: 'orders', onBusy: 'skip' })
      async other(): Promise<undefined> {
        done.push('other');
      }

      @DistributedLock({ key: 'orders', onBusy: 'skip' })
      async run(): Promise<string | undefined> {
        done.push('base');
        return 'of base';
      }
    }
    class Jobs extends Base {
      @SingletonCron(YEARLY, { name: 'mails' })
      @Again
      @DistributedLock({ key: 'stock', onBusy: 'skip' })
      override async run(): Promise<string | undefined> {
        await this.other();
        await super.run();
        done.push('job');
        return 'ran';
      }
    }
    const { jobs, locks, outcomes } = await startJobs(Jobs);
    await locks.acquire('orders');
    const lease = await locks.acquire('stock');
    release.push(() => lease.release());
    expect(await jobs.runNow('mails')).toBe('ran');
    expect([...done, ...outcomes]).toEqual(['job', 'ok']);
  });
});

describe('a job that overrides a job', () => {
  const start = useApps();
  let ran: string[] = [];
  let events: LockEvent[] = [];
  beforeEach(() => {
    ran = [];
    events = [];
  });
  const startJobs = async (...providers: (new () => object)[]) => {
    const observers = [(event: LockEvent) => void events.push(event)];
    const { app } = await start({ imports: [ScheduleModule.forRoot(), inMemory({ observers })], providers });
    return { app, jobs: app.get(SingletonJobs) };
  };

  it.each([undefined, 'report'])('and calls super runs the base method in its own run (name %s)', async (name) => {
    class Base {
      @SingletonCron(YEARLY, { ...(name !== undefined && { name }) })
      async run(run: SingletonRun): Promise<string | undefined> {
        ran.push(`base ${run.tick} ${run.lease.isHeld()}`);
        return 'of base';
      }
    }
    class Middle extends Base {
      @SingletonCron(YEARLY, { name: name ?? 'middle' })
      override async run(run: SingletonRun): Promise<string | undefined> {
        ran.push('middle');
        return super.run(run);
      }
    }
    class Sub extends Middle {
      @SingletonCron(YEARLY, { ...(name !== undefined && { name }) })
      override async run(run: SingletonRun): Promise<string | undefined> {
        ran.push('sub');
        return `${await super.run(run)}, ${await super.run(run)}`;
      }
    }
    const { jobs } = await startJobs(Sub);
    expect(await jobs.runNow(name ?? 'Sub.run', { by: 'ann' })).toBe('of base, of base');
    const base = expect.stringMatching(/^base manual:.* by ann true$/);
    expect(ran).toEqual(['sub', 'middle', base, 'middle', base]);
    expect(events.filter(({ type }) => type.startsWith('tick')).map(({ type }) => type)).toEqual([
      'tickStarted',
      'tickFinished',
    ]);
  });

  it('and calls itself requests a tick; work that it started may call super after the run, which does too', async () => {
    let late: (() => Promise<unknown>) | undefined;
    class Base {
      @SingletonTimeout(0)
      async run(): Promise<string | undefined> {
        ran.push(`base of ${this.constructor.name}`);
        return 'ran';
      }
    }
    class Sub extends Base {
      @SingletonTimeout('sub', 0)
      override async run(): Promise<string | undefined> {
        late = () => super.run();
        return undefined;
      }
    }
    const { app } = await startJobs(Sub);
    await eventually(() => expect(events.map(({ type }) => type)).toContain('tickFinished'));
    expect(ran).toEqual([]);
    // A job of its own, called by hand.
    expect(await late!()).toBe('ran');
    expect(await late!()).toBeUndefined();
    expect(await app.get(Sub).run()).toBeUndefined();
    expect(ran).toEqual(['base of Sub']);
  });
});

const FORMS: [string, (options: { name?: string }) => MethodDecorator][] = [
  ['SingletonCron', (options) => SingletonCron(YEARLY, options) as MethodDecorator],
  ['SingletonInterval', (options) => SingletonInterval(60_000, options) as MethodDecorator],
  ['SingletonTimeout', (options) => SingletonTimeout(60_000, options) as MethodDecorator],
];

describe.each(FORMS)('one job of two objects, with @%s', (_, decorate) => {
  const start = useApps();
  // The scheduler comes first, as in the guides: it has an explanation of its own for two jobs of one name.
  const boot = ({ imports = [], ...metadata }: ModuleMetadata) =>
    start({ imports: [ScheduleModule.forRoot(), inMemory(), ...imports], ...metadata });

  @Injectable()
  class Named {
    @decorate({ name: 'report' })
    async run(): Promise<void> {}
  }
  @Injectable()
  class Unnamed {
    @decorate({})
    async run(): Promise<void> {}
  }

  @Module({})
  class Tenant {
    static of(tenant: string, jobs: Type): DynamicModule {
      return { module: Tenant, providers: [{ provide: 'tenant', useValue: tenant }, jobs] };
    }
  }

  it.each<[string, (jobs: Type) => ModuleMetadata]>([
    ['a dynamic module for two tenants', (jobs) => ({ imports: [Tenant.of('ann', jobs), Tenant.of('bob', jobs)] })],
    [
      'useClass twice',
      (jobs) => ({
        providers: [
          { provide: 'one', useClass: jobs },
          { provide: 'two', useClass: jobs },
        ],
      }),
    ],
    ['provided by two modules', (jobs) => ({ imports: [Tenant.of('ann', jobs)], providers: [jobs] })],
    ['made by two factories', (jobs) => ({ providers: ['one', 'two'].map((name) => madeBy(name, jobs)) })],
  ])('is refused when the application starts, with a way out: %s', async (_case, metadata) => {
    for (const [jobs, what] of [
      [Named, 'the job "report" (Named.run)'],
      [Unnamed, 'Unnamed.run'],
    ] as const) {
      const error = await rejection(boot(metadata(jobs)));
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toContain(`Two objects of one class have ${what}. They would take each other's ticks`);
      expect(error.message).toContain('provide the class in one module');
      expect(error.message).toContain('SingletonJobs.add');
    }
  });

  it('is refused on a class and its subclass, by their names', async () => {
    class Sub extends Named {}
    const error = await rejection(boot({ providers: [Named, Sub] }));
    expect(error.message).toMatch(/^Two objects of the classes (Named and Sub|Sub and Named) have the job "report"/);
    expect(error.message).toContain('provide only one of the classes');
  });

  it('is refused on a transient provider: the scheduler would call an object without the lock service', async () => {
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient extends Unnamed {}
    const error = await rejection(boot({ providers: [Transient] }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toContain('The job of Transient.run is on a provider with Scope.TRANSIENT.');
    expect(error.message).toContain('Put the job on a provider of the default scope');
  });

  const madeBy = (provide: string, jobs: Type) => ({ provide, useFactory: () => new jobs() as object });

  it('is one if two tokens share one object', async () => {
    const object = new Unnamed();
    await boot({ providers: [Unnamed, { provide: 'alias', useExisting: Unnamed }] });
    const { app } = await boot({ providers: ['one', 'two'].map((provide) => ({ provide, useValue: object })) });
    expect(app.get('one')).toBe(app.get('two'));
  });

  it('does not exist for request-scoped objects: Nest schedules nothing', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class OfRequest {
      @decorate({ name: 'of request' })
      async run(): Promise<void> {}
    }
    const { log } = await boot({ imports: [Tenant.of('ann', OfRequest)], providers: [OfRequest] });
    expect(log.at('warn').filter((line) => line.startsWith('Cannot register'))).toHaveLength(2);
  });

  describe('is not created for an object that depends on a request', () => {
    @Injectable()
    class Visitor {
      constructor(@Inject(REQUEST) readonly request: unknown) {}
    }
    class ByConstructor extends Named {
      constructor(@Inject(forwardRef(() => Visitor)) readonly visitor: unknown) {
        super();
      }
    }
    class ByProperty extends Named {
      @Inject() readonly visitor!: Visitor;
    }
    const factory = {
      provide: 'made',
      useFactory: (visitor: Visitor) => ({ visitor }),
      inject: [{ token: Visitor, optional: true }],
    };
    class ByFactory extends Named {
      constructor(@Inject('made') readonly made: unknown) {
        super();
      }
    }

    it.each([ByConstructor, ByProperty, ByFactory])('%p', async (jobs) => {
      const { log } = await boot({
        imports: [{ module: Tenant, providers: [Visitor, factory, jobs] }],
        providers: [Visitor, factory, jobs],
      });
      expect(log.at('warn').filter((line) => line.startsWith('Cannot register'))).toHaveLength(2);
    });
  });

  it('is another one in each subclass, without a name', async () => {
    class Monthly extends Unnamed {}
    class Weekly extends Unnamed {}
    const { log } = await boot({ providers: [Unnamed, Monthly, Weekly] });
    expect(log.at('error')).toEqual([]);
  });

  it('with a name is refused in two subclasses of the class that declares it', async () => {
    class Monthly extends Named {}
    class Weekly extends Named {}
    expect((await rejection(boot({ providers: [Monthly, Weekly] }))).message).toContain('Two objects');
  });

  it('of a mixin needs a name, because mixin() names the class differently in each process', async () => {
    const declaring = (): Type => {
      class Jobs {
        @decorate({})
        async run(): Promise<void> {}
      }
      return mixin(Jobs);
    };
    const inheriting = (): Type => mixin(class extends Unnamed {});
    for (const make of [declaring, inheriting]) {
      const error = await rejection(boot({ providers: [make()] }));
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toMatch(/^The singleton job run of a mixin has no name\. .* Give the job a name\.$/);
    }
  });

  it('needs no name if a class has a written name like those of mixin()', async () => {
    class nightlyreportofoneday {
      @decorate({})
      async run(): Promise<void> {}
    }
    const { log } = await boot({ providers: [nightlyreportofoneday] });
    expect(log.at('error')).toEqual([]);
  });

  it('of a mixin that is called with the name is one of its own', async () => {
    const jobsOf = (tenant: string): Type => {
      class Jobs {
        @decorate({ name: `report-${tenant}` })
        async run(): Promise<void> {}
      }
      return mixin(Jobs);
    };
    const { log } = await boot({ providers: [jobsOf('ann'), jobsOf('bob')] });
    expect(log.at('error')).toEqual([]);
    expect((await rejection(boot({ providers: [jobsOf('ann'), jobsOf('ann')] }))).message).toContain(
      'Two singleton jobs are called "report-ann"',
    );
  });
});

describe('two methods with one job name', () => {
  const start = useApps();

  it('are refused with an explanation, even if the scheduler is imported first', async () => {
    class Reports {
      @SingletonCron(YEARLY, { name: 'nightly' })
      async one(): Promise<void> {}
    }
    class Draws {
      @SingletonCron(YEARLY, { name: 'nightly' })
      async two(): Promise<void> {}
    }
    for (const imports of [
      [ScheduleModule.forRoot(), inMemory()],
      [inMemory(), ScheduleModule.forRoot()],
    ]) {
      expect((await rejection(start({ imports, providers: [Reports, Draws] }))).message).toContain(
        'Two singleton jobs are called "nightly". The second one is Draws.two',
      );
    }
  });
});
