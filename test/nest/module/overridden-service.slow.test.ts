import { jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { DistributedLock, LockBusyError, type Lease, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

@Injectable()
class Orders {
  @DistributedLock((order: string) => `order:${order}`)
  async ship(order: string): Promise<string> {
    return `${order} shipped`;
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
    const busy = new LockBusyError('order:7', { attempts: 1, retryAfterMs: 100 });
    const using = jest.fn(() => Promise.reject(busy));
    const { app } = await start({
      imports: [inMemory()],
      providers: [Orders],
      override: (builder) => builder.overrideProvider(RedisLockService).useValue({ using }),
    });
    expect(await rejection(app.get(Orders).ship('7'))).toBe(busy);
  });
});
