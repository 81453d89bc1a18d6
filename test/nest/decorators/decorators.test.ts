import {
  Body,
  type CanActivate,
  Controller,
  Delete,
  ForbiddenException,
  Get,
  Header,
  HttpCode,
  Inject,
  Injectable,
  NotFoundException,
  Param,
  ParseIntPipe,
  Post,
  Query,
  Scope,
  SetMetadata,
  UseGuards,
  UsePipes,
} from '@nestjs/common';
import { ContextIdFactory, REQUEST } from '@nestjs/core';
import { ApiOperation, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import {
  DistributedLock,
  DistributedSemaphore,
  InjectRedisLock,
  LeaderOnly,
  LockBusyError,
  LockHandler,
  LockModuleMissingError,
  LockReentryError,
  LockTimeoutError,
  ReadLock,
  RedisLockService,
  WriteLock,
} from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate, track } from '../../support/expect/tracked.js';
import { inMemory, useApps } from '../nest-apps.js';
import { PLATFORMS } from '../platforms.js';

@Injectable()
class Closed implements CanActivate {
  canActivate(): boolean {
    throw new ForbiddenException('closed');
  }
}

class Upper {
  transform(value: unknown): unknown {
    return typeof value === 'string' ? value.toUpperCase() : value;
  }
}

@Controller('orders')
class OrdersController {
  constructor(private readonly locks: RedisLockService) {}

  @DistributedLock((id: number) => `order:${id}`)
  @Get('above/:id')
  @Header('X-Shop', 'above')
  @HttpCode(202)
  async above(@Param('id', ParseIntPipe) id: number, @Query('note') note: string): Promise<unknown> {
    return { id, note, locked: this.locks.current()?.resource };
  }

  @Get('below/:id')
  @Header('X-Shop', 'below')
  @HttpCode(202)
  @DistributedLock((id: number) => `order:${id}`)
  async below(@Param('id', ParseIntPipe) id: number, @Query('note') note: string): Promise<unknown> {
    return { id, note, locked: this.locks.current()?.resource };
  }

  @DistributedLock('x')
  @UseGuards(Closed)
  @Get('guarded-above')
  async guardedAbove(): Promise<void> {}

  @Get('guarded-below')
  @UseGuards(Closed)
  @DistributedLock('x')
  async guardedBelow(): Promise<void> {}

  @UsePipes(Upper)
  @DistributedLock((body: string) => `order:${body}`)
  @Post('piped-above')
  async pipedAbove(@Body('name') name: string): Promise<unknown> {
    return { name, locked: this.locks.current()?.resource };
  }

  @DistributedLock((body: string) => `order:${body}`)
  @Post('piped-below')
  @UsePipes(Upper)
  async pipedBelow(@Body('name') name: string): Promise<unknown> {
    return { name, locked: this.locks.current()?.resource };
  }

  @DistributedLock('x')
  @ApiOperation({ summary: 'documented above' })
  @Delete('missing')
  async missing(): Promise<void> {
    throw new NotFoundException('no such order');
  }

  @ApiOperation({ summary: 'documented below' })
  @DistributedLock('x')
  @Delete('also-missing')
  async alsoMissing(): Promise<void> {
    throw new NotFoundException('no such order');
  }
}

@Controller('handlers')
class HandlersController {
  @LockHandler('x')
  @ApiOperation({ summary: 'documented above' })
  @Get('above/:id')
  async above(@Param('id', ParseIntPipe) id: number, @Query('note') note: string): Promise<unknown> {
    return { id, note };
  }

  @ApiOperation({ summary: 'documented below' })
  @Get('below/:id')
  @LockHandler('x')
  async below(@Param('id', ParseIntPipe) id: number, @Query('note') note: string): Promise<unknown> {
    return { id, note };
  }
}

describe.each(PLATFORMS)('@DistributedLock on the routes of %s', (_, adapter) => {
  const start = useApps();
  const startShop = () => start({ imports: [inMemory()], controllers: [OrdersController], adapter: adapter() });

  it.each(['above', 'below'])('%s @Get: route, status, header, parameters and their pipes work', async (where) => {
    const { url } = await startShop();
    const response = await fetch(`${url}/orders/${where}/7?note=hi`);
    expect(response.status).toBe(202);
    expect(response.headers.get('X-Shop')).toBe(where);
    expect(await response.json()).toEqual({ id: 7, note: 'hi', locked: 'order:7' });
    expect((await fetch(`${url}/orders/${where}/seven`)).status).toBe(400);
  });

  it.each(['above', 'below'])('%s @UsePipes: the key function sees what the pipe made', async (where) => {
    const { url } = await startShop();
    const headers = { 'Content-Type': 'application/json' };
    const response = await fetch(`${url}/orders/piped-${where}`, { method: 'POST', headers, body: '{"name":"ann"}' });
    expect(await response.json()).toEqual({ name: 'ANN', locked: 'order:ANN' });
  });

  it('above and below a Swagger decorator: the document has it, and the parameters', async () => {
    const { app } = await startShop();
    const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    expect(paths['/orders/missing']?.delete?.summary).toBe('documented above');
    expect(paths['/orders/also-missing']?.delete?.summary).toBe('documented below');
    for (const where of ['above', 'below']) {
      const parameters = paths[`/orders/${where}/{id}`]?.get?.parameters;
      expect(parameters).toMatchObject([{ name: 'id', in: 'path', schema: { type: 'number' } }, { name: 'note' }]);
    }
  });

  it.each(['above', 'below'])('@LockHandler %s a Swagger decorator: the same', async (where) => {
    const { app } = await start({ imports: [inMemory()], controllers: [HandlersController], adapter: adapter() });
    const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    const route = paths[`/handlers/${where}/{id}`]?.get;
    expect(route?.summary).toBe(`documented ${where}`);
    expect(route?.parameters).toMatchObject([{ name: 'id', schema: { type: 'number' } }, { name: 'note' }]);
  });
});

describe('what others read from a decorated method', () => {
  const mark = Symbol('mark');

  class Reports {
    @SetMetadata('roles', ['admin'])
    @SetMetadata(mark, 1)
    @DistributedLock('x')
    @SetMetadata('summary', 'nightly')
    async nightly(_day: string, _dry: boolean = false): Promise<void> {}
  }

  it('is all there: metadata of every key from above and below, name, length, and parameter types', () => {
    const { nightly } = Reports.prototype;
    expect(Reflect.getMetadata('roles', nightly)).toEqual(['admin']);
    expect(Reflect.getMetadata(mark, nightly)).toBe(1);
    expect(Reflect.getMetadata('summary', nightly)).toBe('nightly');
    expect([nightly.name, nightly.length]).toEqual(['nightly', 1]);
    expect(Reflect.getMetadata('design:paramtypes', Reports.prototype, 'nightly')).toEqual([String, Boolean]);
  });

  it.each([
    ['@DistributedLock', DistributedLock('x')],
    ['@LockHandler', LockHandler('x')],
    ['@LeaderOnly', LeaderOnly('x')],
  ])('%s shows an async method as one: by that, some tracers wait for its end', (_, decorate) => {
    const method = { value: async (): Promise<void> => {} };
    (decorate as MethodDecorator)(class {}.prototype, 'nightly', method);
    expect(method.value.constructor.name).toBe('AsyncFunction');
  });

  it('@LockHandler shows a method that is not async as what it is', () => {
    const [generator, sync] = [{ value: async function* (): AsyncGenerator {} }, { value: (): void => {} }];
    LockHandler('x')(class {}.prototype, 'nightly', generator);
    LockHandler('x')(class {}.prototype, 'nightly', sync);
    expect(generator.value.constructor.name).toBe('AsyncGeneratorFunction');
    expect(sync.value.constructor.name).toBe('Function');
  });
});

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

describe('@ReadLock and @WriteLock', () => {
  let finish = gate();
  let running: string[] = [];

  @Injectable()
  class Prices {
    constructor(readonly locks: RedisLockService) {}

    @ReadLock('prices')
    async read(who: string): Promise<string | undefined> {
      running.push(who);
      await finish.opened;
      return this.locks.current('prices')?.mode;
    }

    @WriteLock('prices')
    async write(who: string): Promise<string | undefined> {
      running.push(who);
      await finish.opened;
      return this.locks.current('prices')?.mode;
    }

    @ReadLock((region: string) => `prices:${region}`)
    async ofRegion(region: string, currency: string): Promise<unknown[]> {
      const lease = this.locks.current();
      return [lease?.mode, lease?.resource, region, currency];
    }

    @WriteLock({ key: (from: string, to: string) => [`prices:${from}`, `prices:${to}`] })
    async copy(_from: string, _to: string): Promise<unknown[]> {
      const lease = this.locks.current();
      return [lease?.mode, ...(lease?.resources ?? [])];
    }

    @ReadLock(['a', 'b'])
    async readBoth(): Promise<unknown[]> {
      const lease = this.locks.current();
      return [lease?.mode, ...(lease?.resources ?? [])];
    }

    @WriteLock({ key: 'prices', onBusy: 'skip' })
    async writesOrSkips(): Promise<string | undefined> {
      return 'wrote';
    }

    @ReadLock({ key: 'prices', waitMs: 0, onBusy: ({ resource }, page: number) => `not ${page}: ${resource}` })
    async readsOrFallsBack(_page: number): Promise<string> {
      return 'read';
    }

    @ReadLock({ key: 'prices', waitMs: 30 })
    async readsSoon(): Promise<void> {}

    @ReadLock('prices')
    async innerRead(): Promise<string | undefined> {
      return this.locks.current()?.mode;
    }
  }

  /** Inherits what is locked, and locks more. */
  @Injectable()
  class ListPrices extends Prices {
    @WriteLock('list')
    override async innerRead(): Promise<string | undefined> {
      return super.innerRead();
    }
  }

  const start = useApps();
  let prices: Prices;
  let locks: RedisLockService;

  beforeEach(async () => {
    finish = gate();
    running = [];
    const { app } = await start({ imports: [inMemory()], providers: [Prices, ListPrices] });
    prices = app.get(Prices);
    locks = app.get(RedisLockService);
  });
  afterEach(() => finish.open());

  it('let readers run together, and a writer only when they have ended', async () => {
    const readers = [prices.read('one'), prices.read('two')];
    await eventually(() => expect(running).toEqual(['one', 'two']));
    const writer = track(prices.write('writer'));
    await eventually(async () => expect((await locks.inspect('prices')).waiters).toMatchObject([{ mode: 'write' }]));
    expect(running).toEqual(['one', 'two']);
    finish.open();
    expect(await Promise.all(readers)).toEqual(['read', 'read']);
    await eventually(() => expect(writer.state).toBe('fulfilled'));
    expect([writer.value, running]).toEqual(['write', ['one', 'two', 'writer']]);
    expect((await locks.inspect('prices')).holders).toEqual([]);
  });

  it('take a name, several, or a typed function of the arguments, which arrive unchanged', async () => {
    expect(await prices.ofRegion('eu', 'EUR')).toEqual(['read', 'prices:eu', 'eu', 'EUR']);
    expect(await prices.copy('us', 'eu')).toEqual(['write', 'prices:eu', 'prices:us']);
    expect(await prices.readBoth()).toEqual(['read', 'a', 'b']);
  });

  it('do what onBusy says, or throw the busy error, while somebody writes', async () => {
    const writer = prices.write('writer');
    await eventually(() => expect(running).toEqual(['writer']));
    expect(await prices.writesOrSkips()).toBeUndefined();
    expect(await prices.readsOrFallsBack(2)).toBe('not 2: prices');
    expect(await rejection(prices.readsSoon())).toBeInstanceOf(LockTimeoutError);
    expect(await locks.tryAcquire('prices', { mode: 'read' })).toBeNull();
    finish.open();
    await writer;
    expect([await prices.writesOrSkips(), await prices.readsOrFallsBack(2)]).toEqual(['wrote', 'read']);
  });
});

describe('@DistributedSemaphore', () => {
  let finish = gate();
  let running = 0;
  let most = 0;

  @Injectable()
  class Exports {
    constructor(readonly locks: RedisLockService) {}

    @DistributedSemaphore({ key: 'exports', permits: 3 })
    async run(): Promise<unknown[]> {
      most = Math.max(most, ++running);
      await finish.opened;
      running--;
      const lease = this.locks.current();
      return [lease?.mode, lease?.resource];
    }

    @DistributedSemaphore({ key: (tenant: string) => `exports:${tenant}`, permits: 3, count: 2 })
    async ofTenant(tenant: string, rows: number): Promise<unknown[]> {
      const { permits, holders } = await this.locks.inspect(`exports:${tenant}`);
      return [tenant, rows, permits, holders[0]?.permits];
    }

    @DistributedSemaphore({ key: 'exports', permits: 3, waitMs: 0 })
    async refuses(): Promise<void> {}

    @DistributedSemaphore({ key: 'exports', permits: 3, waitMs: 30 })
    async waitsABit(): Promise<void> {}

    @DistributedSemaphore({ key: 'exports', permits: 3, onBusy: 'skip' })
    async skips(): Promise<string | undefined> {
      return 'ran';
    }

    @DistributedSemaphore({
      key: 'exports',
      permits: 3,
      waitMs: 0,
      onBusy: ({ resource }, rows: number) => `not ${rows}: ${resource}`,
    })
    async fallsBack(_rows: number): Promise<string> {
      return 'ran';
    }
  }

  @Injectable({ scope: Scope.TRANSIENT })
  class NightlyExports extends Exports {}

  const start = useApps();
  let exports: Exports;
  let locks: RedisLockService;

  beforeEach(async () => {
    finish = gate();
    running = most = 0;
    const { app } = await start({ imports: [inMemory()], providers: [Exports, NightlyExports] });
    exports = app.get(Exports);
    locks = app.get(RedisLockService);
  });
  afterEach(() => finish.open());

  /** Three run and hold all permits. */
  const useUp = async (): Promise<Promise<unknown>[]> => {
    const calls = [exports.run(), exports.run(), exports.run()];
    await eventually(() => expect(running).toBe(3));
    return calls;
  };

  it('runs as many calls at once as there are permits, and the next one when one of them ends', async () => {
    const calls = await useUp();
    calls.push(exports.run(), exports.run());
    await eventually(async () => expect((await locks.inspect('exports')).waiters).not.toEqual([]));
    expect(running).toBe(3);
    finish.open();
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 5 }, () => ['semaphore', 'exports']));
    expect(most).toBe(3);
    expect((await locks.inspect('exports')).holders).toEqual([]);
  });

  it('takes the name from a typed function of the arguments, and several permits at once', async () => {
    expect(await exports.ofTenant('acme', 9)).toEqual(['acme', 9, { total: 3, available: 1 }, 2]);
  });

  it('does what onBusy says, or throws the busy error, while too few permits are free', async () => {
    const calls = await useUp();
    expect(await rejection(exports.refuses())).toBeInstanceOf(LockBusyError);
    expect(await rejection(exports.waitsABit())).toBeInstanceOf(LockTimeoutError);
    expect(await exports.skips()).toBeUndefined();
    expect(await exports.fallsBack(7)).toBe('not 7: exports');
    finish.open();
    await Promise.all(calls);
    expect([await exports.skips(), await exports.fallsBack(7)]).toEqual(['ran', 'ran']);
  });
});
