import { jest } from '@jest/globals';
import { Controller, Get, Injectable } from '@nestjs/common';
import {
  DistributedLock,
  LockBusyError,
  LockHandler,
  LockInterceptor,
  type Lease,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

@Injectable()
class Orders {
  @DistributedLock((order: string) => `order:${order}`)
  async ship(order: string): Promise<string> {
    return `${order} shipped`;
  }
}

@Controller()
class OrdersController {
  @Get('ship')
  @LockHandler('orders')
  ship(): string {
    return 'shipped';
  }
}

describe('Test.createTestingModule with the lock service overridden', () => {
  const start = useApps();

  it('by a mock: the decorated methods call it, and nothing else', async () => {
    const using = jest.fn((_resource: unknown, _options: unknown, work: (lease: Lease) => unknown) =>
      work({} as Lease),
    );
    const { app } = await start({
      // Never connected to: the factory of the real service does not run.
      imports: [RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:1' })],
      providers: [Orders],
      override: (builder) => builder.overrideProvider(RedisLockService).useValue({ using }),
    });
    expect(await app.get(Orders).ship('7')).toBe('7 shipped');
    expect(using.mock.calls).toEqual([['order:7', { group: 'Orders.ship' }, expect.any(Function)]]);
  });

  it('by a mock that is always busy', async () => {
    const busy = new LockBusyError('order:7', 1, 100);
    const using = jest.fn(() => Promise.reject(busy));
    const { app } = await start({
      imports: [inMemory()],
      providers: [Orders],
      override: (builder) => builder.overrideProvider(RedisLockService).useValue({ using }),
    });
    expect(await rejection(app.get(Orders).ship('7'))).toBe(busy);
  });

  it('by a mock, under the interceptor too', async () => {
    const { signal } = new AbortController();
    const using = jest.fn((_resource: unknown, _options: unknown, work: (lease: Lease) => unknown) =>
      work({ signal } as Lease),
    );
    const { url } = await start({
      imports: [inMemory()],
      controllers: [OrdersController],
      override: (builder) => builder.overrideProvider(RedisLockService).useValue({ using }),
    });
    expect(await (await fetch(`${url}/ship`)).text()).toBe('shipped');
    expect(using).toHaveBeenCalledTimes(1);
  });

  it('and the interceptor overridden: the handlers run unlocked', async () => {
    const intercept = jest.fn((_context: unknown, next: { handle(): unknown }) => next.handle());
    const { url } = await start({
      imports: [inMemory()],
      controllers: [OrdersController],
      override: (builder) => builder.overrideInterceptor(LockInterceptor).useValue({ intercept }),
    });
    expect(await (await fetch(`${url}/ship`)).text()).toBe('shipped');
    expect(intercept).toHaveBeenCalledTimes(1);
  });
});
