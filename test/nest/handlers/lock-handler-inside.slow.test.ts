import { Controller, Get, Inject, Param } from '@nestjs/common';
import { DistributedLock, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { inMemory, type RunningApp, useApps } from '../nest-apps.js';

let atOnce = { now: 0, most: 0 };

/** The outcomes of concurrent calls. */
async function outcomes(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((result) =>
    result.status === 'fulfilled' ? result.value : (result.reason as { code?: string }).code,
  );
}

class BaseController {
  @Inject() readonly locks!: RedisLockService;

  /** Counts how many calls are inside of the lock at once; the intercepted one calls the method itself. */
  protected async work(again: () => Promise<unknown>, isOuter: boolean): Promise<unknown> {
    if (isOuter) return outcomes([again(), again(), again()]);
    atOnce.most = Math.max(atOnce.most, ++atOnce.now);
    await this.locks.inspect('orders');
    atOnce.now--;
    return 'ran';
  }

  @LockHandler('orders')
  @DistributedLock('orders')
  async overridden(): Promise<unknown> {
    return this.locks.current()?.resource;
  }
}

@Controller('orders')
class OrdersController extends BaseController {
  @Get('above/:outer')
  @LockHandler('orders')
  @DistributedLock('orders')
  async above(@Param('outer') outer?: string): Promise<unknown> {
    return this.work(() => this.above(), outer === 'outer');
  }

  @Get('below/:outer')
  @DistributedLock('orders')
  @LockHandler('orders')
  async below(@Param('outer') outer?: string): Promise<unknown> {
    return this.work(() => this.below(), outer === 'outer');
  }

  @Get('reentrant/:outer')
  @LockHandler({ key: 'orders', mode: 'reentrant' })
  @DistributedLock({ key: 'orders', mode: 'reentrant' })
  async reentrant(@Param('outer') outer?: string): Promise<unknown> {
    return this.work(() => this.reentrant(), outer === 'outer');
  }

  @Get('overridden')
  @LockHandler('orders')
  override async overridden(): Promise<unknown> {
    return outcomes([super.overridden()]);
  }
}

describe('a handler with @LockHandler and @DistributedLock of one resource, called again from inside', () => {
  const start = useApps();
  let shop: RunningApp;
  let acquired: string[];

  beforeEach(async () => {
    [acquired, atOnce] = [[], { now: 0, most: 0 }];
    shop = await start({ imports: [inMemory()], controllers: [OrdersController] });
    shop.app.get(RedisLockService).observe((event) => event.type === 'acquired' && acquired.push(event.resource));
  });
  const get = async (path: string): Promise<string> => (await fetch(`${shop.url}/orders/${path}`)).text();

  it.each(['above', 'below'])('learns that it would wait for itself: @LockHandler %s', async (where) => {
    expect(JSON.parse(await get(`${where}/outer`))).toEqual(['LOCK_REENTRY', 'LOCK_REENTRY', 'LOCK_REENTRY']);
    expect(atOnce.most).toBe(0);
    expect(acquired).toEqual(['orders']);
  });

  it("enters again, with mode: 'reentrant'", async () => {
    expect(JSON.parse(await get('reentrant/outer'))).toEqual(['ran', 'ran', 'ran']);
    expect(acquired).toEqual(['orders']);
  });

  it('is not taken for the intercepted call because it has the same name: the method that it overrides', async () => {
    expect(JSON.parse(await get('overridden'))).toEqual(['LOCK_REENTRY']);
  });

  it.each(['above', 'below', 'reentrant'])('locks from anywhere else as ever: %s', async (method) => {
    const controller = shop.app.get(OrdersController) as unknown as Record<string, () => Promise<unknown>>;
    expect(await outcomes([controller[method]!(), controller[method]!()])).toEqual(['ran', 'ran']);
    expect(atOnce.most).toBe(1);
    expect(acquired).toEqual(['orders', 'orders']);
  });
});
