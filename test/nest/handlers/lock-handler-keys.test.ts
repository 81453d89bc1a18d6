import {
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Inject,
  Param,
  ParseIntPipe,
  Query,
} from '@nestjs/common';
import { DistributedLock, key, LockExceptionFilter, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { inMemory, type RunningApp, useApps } from '../nest-apps.js';
import { gate } from '../../support/expect/tracked.js';

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

describe('the key of a handler’s lock', () => {
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
