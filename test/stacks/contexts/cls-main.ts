// What cls.slow.test.ts starts: nestjs-cls is CommonJS and requires Nest, which Jest cannot do with Nest 12.
import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { Controller, Get, type INestApplication, Injectable, Module, Param, Sse } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClsModule, type ClsModuleOptions, ClsService, ClsServiceManager, UseCls } from 'nestjs-cls';
import { DistributedLock, key, LockHandler, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { Observable } from 'rxjs';
import { Orders, OrdersController } from './cls-orders.js';

const [connection] = process.argv.slice(2) as [string];

interface Store {
  user: string;
  [other: symbol]: unknown;
}

/** What a call saw before, under and after its lock. */
type Seen = readonly (string | undefined)[];

@Injectable()
class Work {
  constructor(
    private readonly cls: ClsService<Store>,
    private readonly locks: RedisLockService,
  ) {}

  see(): string {
    return `${this.cls.isActive() ? this.cls.get('user') : 'nobody'} ${this.locks.current()?.resource ?? 'unlocked'}`;
  }

  async around(resource: string): Promise<Seen> {
    return [this.see(), await this.locked(resource), this.see()];
  }

  @DistributedLock({ key: (resource: string) => key`${resource}`, waitMs: 30_000 })
  async locked(_resource: string): Promise<string> {
    await new Promise(setImmediate);
    return this.see();
  }
}

/** Jobs, which no request calls. */
@Injectable()
class Jobs {
  constructor(private readonly work: Work) {}

  @UseCls({ setup: (cls, user: string) => cls.set('user', user) })
  @DistributedLock({ key: 'job', waitMs: 30_000 })
  async above(_user: string): Promise<Seen> {
    await new Promise(setImmediate);
    return [this.work.see()];
  }

  @DistributedLock({ key: 'job', waitMs: 30_000 })
  @UseCls({ setup: (cls, user: string) => cls.set('user', user) })
  async below(_user: string): Promise<Seen> {
    await new Promise(setImmediate);
    return [this.work.see()];
  }
}

@Controller()
class WorkController {
  constructor(private readonly work: Work) {}

  @Get('method/:resource')
  method(@Param('resource') resource: string): Promise<Seen> {
    return this.work.around(resource);
  }

  @Get('handler/:resource')
  @LockHandler({ key: (context) => key`${context.getArgByIndex(0).params.resource}`, waitMs: 30_000 })
  async handler(): Promise<Seen> {
    await new Promise(setImmediate);
    return [this.work.see()];
  }

  @Get('keyed')
  @LockHandler(() => key`${ClsServiceManager.getClsService<Store>().get('user')}`)
  async keyed(): Promise<Seen> {
    return [this.work.see()];
  }

  @Sse('events/:resource')
  @LockHandler({ key: (context) => key`${context.getArgByIndex(0).params.resource}`, waitMs: 30_000 })
  events(): Observable<{ data: Seen }> {
    return new Observable((subscriber) => {
      setImmediate(() => {
        subscriber.next({ data: [this.work.see()] });
        subscriber.complete();
      });
    });
  }
}

interface WithUser {
  headers: { 'x-user': string };
}

const setup = (cls: ClsService, request: WithUser): void => cls.set('user', request.headers['x-user']);
const setupOf = (cls: ClsService, context: { getArgByIndex(index: number): WithUser }): void =>
  setup(cls, context.getArgByIndex(0));

type Mode = Pick<ClsModuleOptions, 'middleware' | 'guard' | 'interceptor'>;

const MODES: Record<string, Mode> = {
  middleware: { middleware: { mount: true, setup } },
  guard: { guard: { mount: true, setup: setupOf } },
  interceptor: { interceptor: { mount: true, setup: setupOf } },
};

/** 40 users, each of whom wants one of two resources at the same moment. */
const USERS = Array.from({ length: 40 }, (_, index) => `user-${index}`);
const resourceOf = (index: number): string => `r${index % 2}`;

/** What observers saw of all grants: they belong to no request. */
const grants = { toWaiters: 0, inRequests: 0 };

/** Starts an instance of the application. */
async function start(options: Mode): Promise<{
  readonly app: INestApplication;
  readonly get: (path: string, user: string) => Promise<unknown>;
}> {
  @Module({
    imports: [ClsModule.forRoot({ global: true, ...options }), RedisLockModule.forRoot({ connection })],
    providers: [Work, Jobs, Orders],
    controllers: [WorkController, OrdersController],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'], forceCloseConnections: true });
  app.get(RedisLockService).observe((event) => {
    if (ClsServiceManager.getClsService().isActive()) grants.inRequests++;
    if (event.type === 'acquired' && event.waitedMs > 0) grants.toWaiters++;
  });
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  const get = async (path: string, user: string): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${port}/${path}`, { headers: { 'x-user': user } });
    const text = await response.text();
    return JSON.parse(text.replace(/^[^]*data: /, '')) as unknown;
  };
  return { app, get };
}

/** Two instances: half of the grants come from the same process' memory, and half through Redis. */
async function storiesOf(options: Mode): Promise<object> {
  const instances = [await start(options), await start(options)] as const;
  const [{ app, get }] = instances;
  const all = (path: string): Promise<unknown[]> =>
    Promise.all(USERS.map((user, index) => instances[index < 20 ? 0 : 1].get(`${path}/${resourceOf(index)}`, user)));
  const jobs = app.get(Jobs);
  const stories = {
    method: await all('method'),
    handler: await all('handler'),
    events: await all('events'),
    above: await Promise.all(USERS.map((user) => jobs.above(user))),
    below: await Promise.all(USERS.map((user) => jobs.below(user))),
    here: app.get(Work).see(),
    order: await get('orders/7', 'ann'),
    keyed: await get('keyed', 'ann'),
  };
  for (const instance of instances) await instance.app.close();
  return stories;
}

const stories: Record<string, object> = {};
for (const [mode, options] of Object.entries(MODES)) stories[mode] = await storiesOf(options);
process.stdout.write(JSON.stringify({ stories, grants }));
