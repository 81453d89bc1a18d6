import {
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  NotFoundException,
  Param,
  ParseIntPipe,
  type PipeTransform,
} from '@nestjs/common';
import { Observable, of, throwError } from 'rxjs';
import {
  DistributedLock,
  LockExceptionFilter,
  LockHandler,
  LockInterceptor,
  RedisLockService,
} from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { inMemory, PLATFORMS, useApps } from '../nest-apps.js';
import { gate } from '../../support/expect/tracked.js';

let finish = gate();
let runs: string[] = [];
const orderOf = (context: ExecutionContext): string =>
  `order:${context.switchToHttp().getRequest<{ params: { id: string } }>().params.id}`;

/** Takes longer than the lease of the handler, before its method is called. */
@Injectable()
class AfterTheLease implements PipeTransform {
  @Inject() readonly locks!: RedisLockService;

  async transform(id: string): Promise<string> {
    await eventually(() => expect(this.locks.current()?.isHeld()).toBe(false));
    return id;
  }
}

@Controller('orders')
class OrdersController {
  @Inject() readonly locks!: RedisLockService;

  @Get('plain/:id')
  @LockHandler(orderOf)
  plain(@Param('id', ParseIntPipe) id: number): unknown {
    return { id, locked: this.locks.current()?.resource };
  }

  @LockHandler({ key: (context) => [orderOf(context), 'stock'] })
  @Get('several/:id')
  async several(): Promise<unknown> {
    return this.locks.current()?.resources;
  }

  @Get('stream/:id')
  @LockHandler(orderOf)
  stream(): Observable<unknown> {
    return of({ locked: this.locks.current()?.resource });
  }

  @Get('slow-pipe/:id')
  @LockHandler({ key: orderOf, leaseMs: 50, watchdog: false, onLost: 'ignore' })
  @DistributedLock({ key: (id: string) => `order:${id}`, leaseMs: 60_000 })
  async slowPipe(@Param('id', AfterTheLease) _id: string): Promise<unknown> {
    return { isHeld: this.locks.current()?.isHeld() };
  }

  @Get('slow/:id')
  @LockHandler({ key: orderOf, waitMs: 0 })
  async slow(@Param('id') id: string): Promise<string> {
    runs.push(id);
    await finish.opened;
    return 'done';
  }

  @Get('skip/:id')
  @LockHandler({ key: orderOf, waitMs: 0, onBusy: 'skip' })
  async skip(): Promise<string> {
    return 'done';
  }

  @Get('fallback/:id')
  @LockHandler({
    key: orderOf,
    waitMs: 0,
    onBusy: (busy, context) => ({ waitingFor: busy.resource, handler: context.getHandler().name }),
  })
  async fallback(): Promise<unknown> {
    return {};
  }

  @Get('missing/:id')
  @LockHandler(orderOf)
  missing(): void {
    throw new NotFoundException();
  }

  @Get('missing-later/:id')
  @LockHandler(orderOf)
  missingLater(): Observable<never> {
    return throwError(() => new NotFoundException());
  }

  @Get('no-key/:id')
  @LockHandler(() => undefined as unknown as string)
  noKey(): void {
    runs.push('no-key');
  }

  @Get('lost/:id')
  @LockHandler({ key: orderOf, leaseMs: 1_500 })
  lost(): Observable<unknown> {
    return new Observable(() => {
      const { resource, fencingToken } = this.locks.currentOrThrow();
      void this.locks.forceRelease(resource, { fencingToken });
      return () => runs.push('given up');
    });
  }

  @Get('unlocked')
  unlocked(): unknown {
    return { locked: this.locks.current()?.resource ?? null };
  }
}

describe.each(PLATFORMS)('@LockHandler on %s', (_, adapter) => {
  const start = useApps();
  const startShop = (configure: Parameters<typeof start>[0]['configure'] = () => {}) => {
    const imports = [inMemory()];
    return start({ imports, controllers: [OrdersController], adapter: adapter(), configure });
  };
  const free = async (locks: RedisLockService, resource: string): Promise<void> =>
    expect((await locks.inspect(resource)).holders).toEqual([]);

  beforeEach(() => {
    finish = gate();
    runs = [];
  });
  afterEach(() => finish.open());

  it.each([
    ['plain/7', { id: 7, locked: 'order:7' }],
    ['several/7', ['order:7', 'stock']],
    ['stream/7', { locked: 'order:7' }],
  ])('holds the lock while the handler runs, and not when the answer arrives: %s', async (path, body) => {
    const { url, app } = await startShop();
    expect(await (await fetch(`${url}/orders/${path}`)).json()).toEqual(body);
    await free(app.get(RedisLockService), 'order:7');
  });

  it('locks once when the interceptor is bound to the whole application too, which unmarked handlers do not feel', async () => {
    const { url, app } = await startShop((shop) => {
      shop.useGlobalInterceptors(new LockInterceptor(shop.get(RedisLockService)));
    });
    const acquired: string[] = [];
    app.get(RedisLockService).observe((event) => event.type === 'acquired' && acquired.push(event.resource));
    expect(await (await fetch(`${url}/orders/plain/7`)).json()).toEqual({ id: 7, locked: 'order:7' });
    expect(await (await fetch(`${url}/orders/unlocked`)).json()).toEqual({ locked: null });
    expect(acquired).toEqual(['order:7']);
  });

  it('answers 423 through the filter, or what onBusy says, while another request holds it', async () => {
    const { url } = await startShop((app) => app.useGlobalFilters(new LockExceptionFilter()));
    const first = fetch(`${url}/orders/slow/7`);
    await eventually(() => expect(runs).toEqual(['7']));
    expect((await fetch(`${url}/orders/slow/7`)).status).toBe(423);
    const skipped = await fetch(`${url}/orders/skip/7`);
    expect([skipped.status, await skipped.text()]).toEqual([200, '']);
    expect(await (await fetch(`${url}/orders/fallback/7`)).json()).toEqual({
      waitingFor: 'order:7',
      handler: 'fallback',
    });
    expect(await (await fetch(`${url}/orders/plain/8`)).json()).toEqual({ id: 8, locked: 'order:8' });
    finish.open();
    expect(await (await first).text()).toBe('done');
    expect(runs).toEqual(['7']);
  });

  it.each(['missing', 'missing-later'])("passes the handler's error on, and releases: %s", async (path) => {
    const { url, app } = await startShop();
    expect((await fetch(`${url}/orders/${path}/7`)).status).toBe(404);
    await free(app.get(RedisLockService), 'order:7');
  });

  it("gives up the handler's stream when the lease is lost", async () => {
    const { url } = await startShop((app) => app.useGlobalFilters(new LockExceptionFilter()));
    const response = await fetch(`${url}/orders/lost/7`);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code: 'LEASE_LOST' });
    expect(runs).toEqual(['given up']);
  });
});
