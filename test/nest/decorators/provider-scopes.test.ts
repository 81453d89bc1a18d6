import { Controller, Get, Inject, Injectable, Scope } from '@nestjs/common';
import { ContextIdFactory, REQUEST } from '@nestjs/core';
import {
  DistributedLock,
  InjectRedisLock,
  LockModuleMissingError,
  LockReentryError,
  RedisLockService,
} from 'nestjs-redis-lock';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

const nightly = Symbol('nightly');

@Injectable()
class Reports {
  @InjectRedisLock() readonly locks!: RedisLockService;

  @DistributedLock('reports')
  async build(): Promise<string> {
    return `by ${this.constructor.name} under ${this.locks.current()?.resource}`;
  }

  @DistributedLock('reports:nightly')
  async [nightly](): Promise<string | undefined> {
    return this.locks.current()?.resource;
  }
}

@Injectable()
class Clock {
  readonly year = 2026;
}

/** Inherits the locked method, and has an injected property of its own. */
@Injectable()
class YearlyReports extends Reports {
  @Inject() readonly clock!: Clock;

  @DistributedLock('yearly')
  async summary(): Promise<string> {
    return `${this.clock.year} under ${this.locks.current()?.resource}`;
  }
}

@Injectable()
class RelockedReports extends Reports {
  @DistributedLock('reports')
  override async build(): Promise<string> {
    return super.build();
  }
}

@Injectable()
class NestedReports extends Reports {
  @DistributedLock('nested')
  override async build(): Promise<string> {
    return super.build();
  }
}

@Injectable({ scope: Scope.REQUEST })
class RequestReports extends Reports {
  constructor(@Inject(REQUEST) readonly request: { url: string }) {
    super();
  }

  @DistributedLock(function (this: RequestReports) {
    return `of ${this.request.url}`;
  } as () => string)
  async ofRequest(): Promise<string | undefined> {
    return this.locks.current()?.resource;
  }
}

@Controller('reports')
class ReportsController {
  constructor(private readonly reports: RequestReports) {}

  @Get(':id')
  build(): Promise<string | undefined> {
    return this.reports.ofRequest();
  }
}

describe('a locked method', () => {
  const start = useApps();
  const startWith = async (...providers: (abstract new (...args: never[]) => unknown)[]) =>
    (await start({ imports: [inMemory()], providers: providers as never[] })).app;

  it('of a singleton', async () => {
    const app = await startWith(Reports);
    expect(await app.get(Reports).build()).toBe('by Reports under reports');
  });

  it('that a subclass inherits, next to locked methods and injected properties of its own', async () => {
    const app = await startWith(YearlyReports, Clock);
    const reports = app.get(YearlyReports);
    expect(await reports.build()).toBe('by YearlyReports under reports');
    expect(await reports.summary()).toBe('2026 under yearly');
  });

  it('that a subclass overrides with another lock, and calls as super: both are held', async () => {
    const app = await startWith(NestedReports);
    const acquired: string[] = [];
    app.get(RedisLockService).observe((event) => event.type === 'acquired' && acquired.push(event.resource));
    expect(await app.get(NestedReports).build()).toBe('by NestedReports under reports');
    expect(acquired).toEqual(['nested', 'reports']);
  });

  it('that a subclass locks a second time, in exclusive mode: an error at once that says what to do', async () => {
    const app = await startWith(RelockedReports);
    const error = await rejection(app.get(RelockedReports).build());
    expect(error).toBeInstanceOf(LockReentryError);
    expect(error.message).toContain("Use mode: 'reentrant' for both");
  });

  it('of a request-scoped provider: each instance has the service, and its own key', async () => {
    const { url, app } = await start({
      imports: [inMemory()],
      providers: [RequestReports],
      controllers: [ReportsController],
    });
    expect(await (await fetch(`${url}/reports/1`)).text()).toBe('of /reports/1');
    expect(await (await fetch(`${url}/reports/2`)).text()).toBe('of /reports/2');
    const contextId = ContextIdFactory.create();
    app.registerRequestByContextId({ url: '/by-hand' }, contextId);
    expect(await (await app.resolve(RequestReports, contextId)).ofRequest()).toBe('of /by-hand');
  });

  it('whose name is a symbol', async () => {
    const app = await startWith(Reports);
    expect(await app.get(Reports)[nightly]()).toBe('reports:nightly');
  });
});

describe('a locked method of an object that Nest did not inject into', () => {
  const start = useApps();

  it('made with new: LockModuleMissingError, which says why and what to do in a test', async () => {
    const error = await rejection<LockModuleMissingError>(new Reports().build());
    expect(error).toBeInstanceOf(LockModuleMissingError);
    expect(error.code).toBe('LOCK_MODULE_MISSING');
    expect(error.message).toMatch(/^Reports\.build was called on an object that has no lock service/);
    expect(error.message).toContain("Test.createTestingModule with RedisLockModule.forRoot({ connection: 'memory:' })");
  });

  it('called in the constructor, before anything is injected: the same error says so', async () => {
    @Injectable()
    class Eager extends Reports {
      readonly early = rejection(this.build());
    }
    const { app } = await start({ imports: [inMemory()], providers: [Eager] });
    const error = await app.get(Eager).early;
    expect(error).toBeInstanceOf(LockModuleMissingError);
    expect(error.message).toContain('call the method later');
    expect(await app.get(Eager).build()).toBe('by Eager under reports');
  });
});
