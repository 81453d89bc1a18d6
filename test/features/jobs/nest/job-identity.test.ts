import {
  type DynamicModule,
  forwardRef,
  Inject,
  Injectable,
  mixin,
  Module,
  type ModuleMetadata,
  Scope,
  type Type,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { InvalidLockOptionsError } from 'nestjs-redis-lock';
import { SingletonCron, SingletonInterval, SingletonTimeout } from 'nestjs-redis-lock/schedule';
import { rejection } from '../../../support/expect/eventually.js';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

const YEARLY = '0 0 0 1 1 *';

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
    expect(error.message).toContain('provide one of the classes only');
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
