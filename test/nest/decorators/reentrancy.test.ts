import { Injectable } from '@nestjs/common';
import { DistributedLock, type LockEvent, LockReentryError, RedisLockService } from 'nestjs-redis-lock';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

const reentrant = { key: (order: string) => `order:${order}`, mode: 'reentrant', waitMs: 150 } as const;

@Injectable()
class Stock {
  constructor(readonly locks: RedisLockService) {}

  @DistributedLock(reentrant)
  async reserve(order: string): Promise<number> {
    return this.locks.current(`order:${order}`)!.fencingToken;
  }

  @DistributedLock({ ...reentrant, mode: 'exclusive' })
  async count(_order: string): Promise<void> {}
}

@Injectable()
class Payments {
  constructor(
    readonly stock: Stock,
    readonly locks: RedisLockService,
  ) {}

  @DistributedLock(reentrant)
  async charge(order: string): Promise<number[]> {
    return [this.locks.current(`order:${order}`)!.fencingToken, await this.stock.reserve(order)];
  }
}

@Injectable()
class Checkout {
  constructor(
    readonly payments: Payments,
    readonly stock: Stock,
    readonly locks: RedisLockService,
  ) {}

  @DistributedLock(reentrant)
  async run(order: string): Promise<number[]> {
    return [this.locks.current()!.fencingToken, ...(await this.payments.charge(order))];
  }

  @DistributedLock(reentrant)
  async failInside(order: string): Promise<void> {
    await this.payments.charge(order);
    throw new Error('after the inner lock');
  }

  @DistributedLock({ ...reentrant, mode: 'exclusive' })
  async exclusively(order: string): Promise<unknown> {
    return this.stock.count(order);
  }

  @DistributedLock(reentrant)
  async mixed(order: string): Promise<unknown> {
    return this.stock.count(order);
  }
}

describe('locked methods that call locked methods of other services', () => {
  const start = useApps();
  let checkout: Checkout;
  let locks: RedisLockService;
  let events: LockEvent[];

  beforeEach(async () => {
    const { app } = await start({ imports: [inMemory()], providers: [Checkout, Payments, Stock] });
    [checkout, locks] = [app.get(Checkout), app.get(RedisLockService)];
    events = [];
    locks.observe((event) => events.push(event));
  });
  const countOf = (type: LockEvent['type']): number => events.filter((event) => event.type === type).length;
  const expectFree = async (): Promise<void> => expect((await locks.inspect('order:7')).holders).toEqual([]);

  it('enter again through any number of them: one lock, one fencing token, freed by the outermost', async () => {
    const tokens = await checkout.run('7');
    expect(tokens).toHaveLength(3);
    expect(new Set(tokens).size).toBe(1);
    expect([countOf('acquired'), countOf('released')]).toEqual([1, 1]);
    await expectFree();
  });

  it('free the lock when the outermost fails after the inner ones', async () => {
    expect((await rejection(checkout.failInside('7'))).message).toBe('after the inner lock');
    await expectFree();
  });

  it.each(['exclusively', 'mixed'] as const)(
    'are told at once where they would wait for themselves (%s)',
    async (how) => {
      const error = await rejection(checkout[how]('7'));
      expect(error).toBeInstanceOf(LockReentryError);
      expect(error.message).toContain("Use mode: 'reentrant' for both");
      await expectFree();
    },
  );
});
