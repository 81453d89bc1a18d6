import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import { DistributedLock, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { inMemory, type RunningApp, useApps } from '../nest-apps.js';

@Injectable()
class Stock {
  @DistributedLock('order')
  async take(): Promise<string> {
    return 'taken';
  }

  @DistributedLock({ key: 'order', mode: 'reentrant' })
  async takeAgain(): Promise<string> {
    return 'taken';
  }
}

@Controller('orders')
class OrdersController {
  @Inject() readonly locks!: RedisLockService;
  @Inject() readonly stock!: Stock;

  @Get('above')
  @LockHandler('order')
  @DistributedLock('stock')
  async above(): Promise<unknown> {
    return this.#held();
  }

  @Get('below')
  @DistributedLock('stock')
  @LockHandler('order')
  async below(): Promise<unknown> {
    return this.#held();
  }

  @Get('same')
  @LockHandler('order')
  @DistributedLock('order')
  async same(): Promise<unknown> {
    return this.#held();
  }

  @Get('service')
  @LockHandler('order')
  async service(): Promise<unknown> {
    return this.stock.take().catch(({ code }: { code: string }) => code);
  }

  @Get('service-again')
  @LockHandler({ key: 'order', mode: 'reentrant' })
  async serviceAgain(): Promise<unknown> {
    return this.stock.takeAgain();
  }

  async #held(): Promise<unknown> {
    const held = await Promise.all(['order', 'stock'].map(async (name) => (await this.locks.inspect(name)).holders));
    return held.map((holders) => holders.length);
  }
}

/** Tests the rules of docs/guide/request-handlers.md for both decorators on one method. */
describe('@LockHandler and @DistributedLock in one request', () => {
  const start = useApps();
  let shop: RunningApp;
  let told: string[];

  beforeEach(async () => {
    told = [];
    shop = await start({ imports: [inMemory()], controllers: [OrdersController], providers: [Stock] });
    shop.app.get(RedisLockService).observe((event) => {
      if (event.type === 'acquired' || event.type === 'released') told.push(`${event.type} ${event.resource}`);
    });
  });
  const get = async (path: string): Promise<string> => (await fetch(`${shop.url}/orders/${path}`)).text();

  it.each(['above', 'below'])("both locks are held, the handler's outside, in either order: %s", async (path) => {
    expect(JSON.parse(await get(path))).toEqual([1, 1]);
    await eventually(() =>
      expect(told).toEqual(['acquired order', 'acquired stock', 'released stock', 'released order']),
    );
  });

  it('of the same resource, lock it once', async () => {
    expect(JSON.parse(await get('same'))).toEqual([1, 0]);
    await eventually(() => expect(told).toEqual(['acquired order', 'released order']));
  });

  it('in a service that the handler calls, the same resource is a re-entry', async () => {
    expect(await get('service')).toBe('LOCK_REENTRY');
    expect(await get('service-again')).toBe('taken');
  });
});
