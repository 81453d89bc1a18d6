import { PassThrough, Readable } from 'node:stream';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Inject,
  Injectable,
  type MessageEvent,
  type NestInterceptor,
  NotFoundException,
  Param,
  ParseIntPipe,
  type PipeTransform,
  Query,
  Sse,
  StreamableFile,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import {
  DistributedLock,
  key,
  LockExceptionFilter,
  LockHandler,
  LockInterceptor,
  RedisLockService,
} from 'nestjs-redis-lock';
import { concat, defer, finalize, map, NEVER, Observable, of, throwError } from 'rxjs';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate } from '../../support/expect/tracked.js';
import { inMemory, type RunningApp, useApps } from '../nest-apps.js';
import { PLATFORMS } from '../platforms.js';
import { type Call, useHandlerShop } from './handler-shop.js';

describe('a handler with a lock', () => {
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
});

describe('the key of a handler’s lock', () => {
  let mayEnd = gate();
  let began: unknown[] = [];
  const query = (context: ExecutionContext): { id: string } =>
    context.switchToHttp().getRequest<{ query: { id: string } }>().query;

  @Controller('orders')
  class OrdersController {
    @Inject() readonly locks!: RedisLockService;

    @Get('piped/:id')
    @DistributedLock((id: number) => key`order:${id}`)
    async piped(@Param('id', ParseIntPipe) id: number): Promise<unknown> {
      began.push(id);
      await mayEnd.opened;
      return this.locks.current()?.resource;
    }

    @Get('method')
    @DistributedLock((id: string) => key`order:${id}`)
    async method(@Query('id') id: string): Promise<void> {
      began.push(id);
    }

    @Get('plain')
    @LockHandler((context) => `order:${query(context).id}`)
    async plain(): Promise<void> {
      began.push('plain');
    }

    @Get('handler')
    @LockHandler((context) => key`order:${query(context).id}`)
    async handler(): Promise<void> {
      began.push(this.locks.current()?.resource);
    }
  }

  const start = useApps();
  let shop: RunningApp;

  beforeEach(async () => {
    [mayEnd, began] = [gate(), []];
    const configure = (app: INestApplication): unknown => app.useGlobalFilters(new LockExceptionFilter());
    shop = await start({ imports: [inMemory()], controllers: [OrdersController], configure });
  });
  afterEach(() => mayEnd.open());
  const get = (path: string): Promise<Response> => fetch(`${shop.url}/orders/${path}`);

  it('with @DistributedLock, is made of what the pipes made: 7 and 07 take turns', async () => {
    const locks = shop.app.get(RedisLockService);
    const first = get('piped/7');
    await eventually(() => expect(began).toEqual([7]));
    const second = get('piped/07');
    await eventually(async () => expect((await locks.inspect('order:7')).waiters).toHaveLength(1));
    expect(began).toEqual([7]);
    mayEnd.open();
    expect([await (await first).text(), await (await second).text()]).toEqual(['order:7', 'order:7']);
    expect(began).toEqual([7, 7]);
  });

  const requests = ['method', 'handler'].flatMap((path) => [path, `${path}?id=`, `${path}?id=1&id=2`]);
  it.each([...requests, 'plain'])(
    'is the fault of a client that leaves a parameter out, or sends none or two: %s',
    async (path) => {
      expect((await get(path)).status).toBe(400);
      expect([began, shop.log.at('error')]).toEqual([[], []]);
    },
  );
});

describe('bodies of an answer', () => {
  let file = new PassThrough();
  let mayEnd = gate();

  class Instead implements NestInterceptor {
    intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
      return next.handle().pipe(map(() => 'something else'));
    }
  }

  const held = (locks: RedisLockService): string => `held: ${locks.current()?.isHeld()}`;
  const later = (locks: RedisLockService): Observable<string> =>
    defer(async () => {
      await mayEnd.opened;
      return held(locks);
    });

  @Controller()
  class ExportsController {
    @Inject() readonly locks!: RedisLockService;

    @Get('file')
    @LockHandler('exports')
    async file(): Promise<StreamableFile> {
      return new StreamableFile(file);
    }

    @Get('readable')
    @LockHandler('exports')
    async readable(): Promise<Readable> {
      return file;
    }

    @Get('rows')
    @LockHandler('exports')
    async *rows(): AsyncGenerator<string> {
      yield 'first ';
      await mayEnd.opened;
      yield 'last';
    }

    @Get('replaced')
    @UseInterceptors(Instead)
    @LockHandler('exports')
    replacedInside(): StreamableFile {
      return new StreamableFile(file);
    }

    @Get('replaced-outside')
    @LockHandler('exports')
    @UseInterceptors(Instead)
    replacedOutside(): StreamableFile {
      return new StreamableFile(file);
    }

    @Get('observable')
    @LockHandler('exports')
    async observable(): Promise<Observable<string>> {
      return later(this.locks);
    }

    @Sse('events')
    @LockHandler('exports')
    async events(): Promise<Observable<MessageEvent>> {
      return later(this.locks).pipe(map((data) => ({ data })));
    }

    @Get('lost')
    @LockHandler({ key: 'exports', leaseMs: 50, watchdog: false })
    lost(): StreamableFile {
      return new StreamableFile(file);
    }

    @Get('both')
    @LockHandler('exports')
    @DistributedLock('exports')
    async both(): Promise<StreamableFile> {
      return new StreamableFile(file);
    }
  }

  @Injectable()
  class Exports {
    @DistributedLock('exports')
    async open(): Promise<Readable> {
      return file;
    }
  }

  describe.each(PLATFORMS)('@LockHandler and answers that are sent bit by bit, on %s', (_, adapter) => {
    beforeEach(() => {
      [file, mayEnd] = [new PassThrough(), gate()];
    });
    const shop = useHandlerShop('exports', adapter, { controllers: [ExportsController], providers: [Exports] });
    afterEach(() => {
      mayEnd.open();
      file.destroy();
    });

    const holders = (): Promise<number> => shop().holders();
    const call = (path: string): Call => shop().call(path);

    it.each(['file', 'readable', 'both'])('hold the lock until the stream has ended: %s', async (path) => {
      const answer = call(path);
      file.write('first ');
      await eventually(() => expect(answer.text).toBe('first '));
      expect(await holders()).toBe(1);
      file.end('last');
      await eventually(() => expect(answer).toMatchObject({ text: 'first last', ended: true }));
      await eventually(async () => expect(await holders()).toBe(0));
    });

    it.each(['file', 'readable'])('free the lock when the client goes away: %s', async (path) => {
      const answer = call(path);
      file.write('first ');
      await eventually(() => expect(answer.text).toBe('first '));
      answer.hangUp();
      await eventually(async () => expect(await holders()).toBe(0));
    });

    it.each(['replaced', 'replaced-outside'])(
      'free the lock when something else was sent in place of the stream: %s',
      async (path) => {
        expect(await (await fetch(`${shop().url}/${path}`)).text()).toBe('something else');
        await eventually(async () => expect(await holders()).toBe(0));
      },
    );

    it.each([
      ['observable', 'held: true'],
      ['events', 'data: held: true'],
    ])('hold the lock until the Observable that a promise gives has ended: %s', async (path, text) => {
      const answer = call(path);
      await eventually(async () => expect(await holders()).toBe(1));
      mayEnd.open();
      await eventually(() => expect(answer.text).toContain(text));
      await eventually(async () => expect(await holders()).toBe(0));
    });

    it('break off when the lease is lost', async () => {
      const answer = call('lost');
      file.write('first ');
      await eventually(() => expect(answer.ended).toBe(true));
      expect(file.destroyed).toBe(true);
    });

    it('are refused from any method with @DistributedLock', async () => {
      const { message } = await rejection(shop().app.get(Exports).open());
      expect(message).toMatch('Exports.open returned a stream under the lock of "exports"');
      expect(file.destroyed).toBe(true);
    });
  });
});

describe('streams of an answer', () => {
  let finish = gate();
  let guard = gate();
  let events: string[] = [];

  class Slow implements CanActivate {
    async canActivate(): Promise<boolean> {
      events.push('guarded');
      await guard.opened;
      return true;
    }
  }

  @Controller()
  class PricesController {
    @Inject() readonly locks!: RedisLockService;

    @Sse('endless')
    @LockHandler('prices')
    endless(): Observable<MessageEvent> {
      const token = this.locks.current()?.fencingToken;
      return concat(of({ data: `held by token ${token}` }), NEVER).pipe(finalize(() => events.push('stream ended')));
    }

    @Sse('fails')
    @LockHandler('prices')
    fails(): Observable<MessageEvent> {
      return concat(
        of({ data: 'one' }),
        new Observable<never>((subscriber) => subscriber.error(new Error('exchange closed'))),
      );
    }

    @Get('slow/:who')
    @LockHandler({ key: 'prices', waitMs: Infinity })
    async slow(@Param('who') who: string): Promise<string> {
      events.push(`${who} began`);
      await finish.opened;
      events.push(`${who} ended`);
      return who;
    }

    @Get('guarded')
    @UseGuards(Slow)
    @LockHandler({ key: 'prices', waitMs: Infinity })
    async guarded(): Promise<void> {
      events.push('ran');
    }
  }

  describe.each(PLATFORMS)('@LockHandler and clients that come and go, on %s', (_, adapter) => {
    beforeEach(() => {
      [finish, guard, events] = [gate(), gate(), []];
    });
    const shop = useHandlerShop('prices', adapter, { controllers: [PricesController] });
    afterEach(() => {
      finish.open();
      guard.open();
    });

    const call = (path: string): Call => shop().call(path);
    const holders = (): Promise<number> => shop().holders();
    const waiters = (): Promise<number> => shop().waiters();

    it('a stream of server-sent events holds the lock until the client disconnects', async () => {
      const leaving = new AbortController();
      const response = await fetch(`${shop().url}/endless`, { signal: leaving.signal });
      const reader = response.body!.getReader();
      let text = '';
      while (!text.includes('\n\n')) text += new TextDecoder().decode((await reader.read()).value);
      expect(text).toContain('data: held by token');
      expect(await holders()).toBe(1);
      leaving.abort();
      await eventually(async () => expect(await holders()).toBe(0));
      expect(events).toEqual(['stream ended']);
    });

    it('a client that disconnects while it waits blocks no other call, never runs, and logs no error', async () => {
      call('slow/first');
      await eventually(() => expect(events).toEqual(['first began']));
      const { hangUp } = call('slow/second');
      await eventually(async () => expect(await waiters()).toBe(1));
      hangUp();
      await eventually(async () => expect(await waiters()).toBe(0));
      const third = fetch(`${shop().url}/slow/third`);
      await eventually(async () => expect(await waiters()).toBe(1));
      finish.open();
      expect(await (await third).text()).toBe('third');
      expect(events).toEqual(['first began', 'first ended', 'third began', 'third ended']);
      expect(shop().log.at('error')).toEqual([]);
    });

    it('a client that disconnects while the handler runs changes nothing: the work continues under the lock', async () => {
      const { hangUp } = call('slow/first');
      await eventually(() => expect(events).toEqual(['first began']));
      hangUp();
      await eventually(async () => expect(await connections()).toBe(0));
      expect(await holders()).toBe(1);
      finish.open();
      await eventually(async () => expect(await holders()).toBe(0));
      expect(events).toEqual(['first began', 'first ended']);
    });

    const connections = (): Promise<number> =>
      new Promise((resolve, reject) =>
        shop()
          .app.getHttpServer()
          .getConnections((error: Error | null, count: number) => (error ? reject(error) : resolve(count))),
      );
  });
});
