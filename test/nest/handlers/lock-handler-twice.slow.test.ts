import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  type NestInterceptor,
  RequestTimeoutException,
  UseInterceptors,
} from '@nestjs/common';
import { defer, type Observable, raceWith, switchMap, throwError } from 'rxjs';
import { InjectRedisLock, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { inMemory, type RunningApp, useApps } from '../nest-apps.js';
import { gate } from '../../support/expect/tracked.js';

let timeIsUp = gate();
let mayEnd = gate();

class TimeoutInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const timeout = defer(() => timeIsUp.opened).pipe(switchMap(() => throwError(() => new RequestTimeoutException())));
    return next.handle().pipe(raceWith(timeout));
  }
}

@Controller('orders')
class OrdersController {
  constructor(
    readonly locks: RedisLockService,
    @InjectRedisLock('billing') readonly billing: RedisLockService,
  ) {}

  @LockHandler('zebra')
  @LockHandler('ant')
  @Get('two')
  async two(): Promise<unknown> {
    return this.#held();
  }

  @Get('same')
  @LockHandler('order')
  @LockHandler('order')
  @LockHandler('stock')
  async same(): Promise<unknown> {
    return this.#held();
  }

  @Get('timeout')
  @LockHandler({ key: 'order', waitMs: Infinity })
  @LockHandler({ key: 'stock', service: 'billing', waitMs: Infinity })
  @UseInterceptors(TimeoutInterceptor)
  async timeout(): Promise<void> {
    await mayEnd.opened;
  }

  @Get('timeout-between')
  @LockHandler({ key: 'stock', service: 'billing', waitMs: Infinity })
  @UseInterceptors(TimeoutInterceptor)
  @LockHandler({ key: 'order', waitMs: Infinity })
  async timeoutBetween(): Promise<void> {
    await mayEnd.opened;
  }

  #held(): string[] {
    return ['zebra', 'ant', 'order', 'stock'].filter((name) => this.locks.current(name)?.isHeld());
  }
}

describe('two @LockHandler on a method', () => {
  const start = useApps();
  let shop: RunningApp;
  let events: string[];

  const startShop = async () => {
    [timeIsUp, mayEnd, events] = [gate(), gate(), []];
    const imports = [inMemory(), inMemory({ service: 'billing' })];
    shop = await start({ imports, controllers: [OrdersController] });
    const controller = shop.app.get(OrdersController);
    for (const service of [controller.locks, controller.billing]) {
      service.observe((event) => {
        if (event.type === 'acquired') events.push(`+${event.resource}`);
        if (event.type === 'released') events.push(`-${event.resource}`);
      });
    }
  };
  afterEach(() => [timeIsUp, mayEnd].forEach(({ open }) => open()));
  const get = async (path: string): Promise<unknown> => (await fetch(`${shop.url}/orders/${path}`)).json();

  it('are both held, the upper one first, and released in reverse', async () => {
    await startShop();
    expect(await get('two')).toEqual(['zebra', 'ant']);
    expect(events).toEqual(['+zebra', '+ant', '-ant', '-zebra']);
  });

  it('lock once for the same resource', async () => {
    await startShop();
    expect(await get('same')).toEqual(['order', 'stock']);
    expect(events).toEqual(['+order', '+stock', '-stock', '-order']);
  });

  it.each(['timeout', 'timeout-between'])(
    'are both held until the handler has ended, when the request is given up before: %s',
    async (path) => {
      await startShop();
      const request = get(path);
      await eventually(() => expect(events).toHaveLength(2));
      const taken = events.map((event) => event.slice(1));
      timeIsUp.open();
      expect(await request).toMatchObject({ statusCode: 408 });
      expect(events).toHaveLength(2);
      mayEnd.open();
      await eventually(() => expect(events).toHaveLength(4));
      expect(events.slice(2).map((event) => event.slice(1))).toEqual(taken.reverse());
      expect(shop.log.at('error')).toEqual([]);
    },
  );
});
