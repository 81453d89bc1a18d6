import { Injectable, NotFoundException } from '@nestjs/common';
import { DistributedLock, LeaseLostError, LockBusyError, LockNotHeldError, RedisLockService } from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';
import { gate, track } from '../../support/expect/tracked.js';

const failure = new NotFoundException('no such order');
const foreign = new LockBusyError('of another library', 1, 1);
let finish = gate();
let runs = 0;

@Injectable()
class Orders {
  constructor(readonly locks: RedisLockService) {}

  @DistributedLock((order: string) => `order:${order}`)
  async one(order: string, quantity: number): Promise<[string | undefined, string, number]> {
    return [this.locks.current()?.resource, order, quantity];
  }

  @DistributedLock((order: string) => `order:${order}`)
  async book(order: string): Promise<string> {
    return this.booked(order);
  }

  async booked(order: string): Promise<string> {
    await Promise.resolve();
    this.locks.assertLocked(`order:${order}`);
    return `booked under ${this.locks.currentOrThrow().resource}`;
  }

  @DistributedLock({ key: (from: string, to: string) => [`account:${from}`, `account:${to}`] })
  async transfer(_from: string, _to: string): Promise<readonly string[] | undefined> {
    return this.locks.current()?.resources;
  }

  began = false;

  async *rows(): AsyncGenerator<number> {
    this.began = true;
    yield 1;
  }

  // As another compiler accepts it.
  @(DistributedLock('rows') as MethodDecorator)
  async allRows(): Promise<AsyncIterable<number>> {
    return this.rows();
  }

  readonly region = 'eu';

  @DistributedLock('slow')
  async slow(): Promise<void> {
    runs++;
    await finish.opened;
  }

  @DistributedLock({ key: 'slow', waitMs: 0 })
  async refuses(): Promise<void> {
    runs++;
  }

  @DistributedLock({ key: 'slow', waitMs: 30 })
  async waitsABit(): Promise<void> {
    runs++;
  }

  @DistributedLock({ key: 'slow', onBusy: 'skip' })
  async skips(): Promise<string | undefined> {
    runs++;
    return 'ran';
  }

  readonly postponed: unknown[][] = [];

  @DistributedLock({
    key: (_order: string) => 'slow',
    waitMs: 0,
    onBusy(this: Orders, { code }, order, note?: string) {
      this.postponed.push([code, order, note]);
      return 'postponed';
    },
  })
  async mayBePostponed(_order: string, _note?: string): Promise<string> {
    runs++;
    return 'ran';
  }

  @DistributedLock({ key: 'fails', onBusy: 'skip' })
  async fails(): Promise<void> {
    throw failure;
  }

  @DistributedLock({ key: 'fails', onBusy: 'skip' })
  async failsBusily(): Promise<void> {
    throw foreign;
  }

  @DistributedLock({ key: 'fixed', leaseMs: 50, watchdog: false, onLost: 'ignore' })
  async outlivesItsLease(): Promise<string> {
    await aborted(this.locks);
    return 'finished';
  }

  @DistributedLock({ key: 'fixed', leaseMs: 50, watchdog: false })
  async mustNotOutliveItsLease(): Promise<string> {
    await aborted(this.locks);
    return 'finished';
  }

  @DistributedLock({ key: 'fixed', leaseMs: 50, watchdog: false })
  async failsAfterItsLease(): Promise<string> {
    await aborted(this.locks);
    throw failure;
  }
}

async function aborted(locks: RedisLockService): Promise<void> {
  const { signal } = locks.current()!;
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
}

describe('@DistributedLock', () => {
  const start = useApps();
  let orders: Orders;
  let locks: RedisLockService;

  beforeEach(async () => {
    runs = 0;
    finish = gate();
    const { app } = await start({ imports: [inMemory()], providers: [Orders] });
    orders = app.get(Orders);
    locks = app.get(RedisLockService);
  });
  afterEach(() => finish.open());

  it('is what assertLocked asks for', async () => {
    expect(await orders.book('7')).toBe('booked under order:7');
    expect(await rejection(orders.booked('7'))).toBeInstanceOf(LockNotHeldError);
  });

  it('refuses the generator that a method resolves to, before its code runs without the lock', async () => {
    const error = await rejection(orders.allRows());
    expect(error).toMatchObject({ code: 'INVALID_LOCK_OPTIONS' });
    expect(error.message).toContain('Orders.allRows returned a generator under the lock of "rows"');
    expect(error.message).toContain('Lock inside of the generator');
    expect(orders.began).toBe(false);
    expect((await locks.inspect('rows')).mode).toBeNull();
  });

  it('holds the resource that a function makes of the arguments, which arrive unchanged', async () => {
    expect(await orders.one('7', 3)).toEqual(['order:7', '7', 3]);
  });

  it('holds several resources, each once, in one order for all callers', async () => {
    expect(await orders.transfer('b', 'a')).toEqual(['account:a', 'account:b']);
    expect(await orders.transfer('a', 'a')).toEqual(['account:a']);
  });

  it('runs one call after the other, also on one instance', async () => {
    const first = track(orders.slow());
    const second = track(orders.slow());
    await eventually(async () => expect((await locks.inspect('slow')).waiters).toHaveLength(1));
    expect(runs).toBe(1);
    finish.open();
    await eventually(() => expect([first.state, second.state]).toEqual(['fulfilled', 'fulfilled']));
    expect(runs).toBe(2);
  });

  describe('on a busy resource', () => {
    /** Holds it, runs `test`, and checks that only the holder ever ran. */
    const whileBusy = async (test: () => Promise<void>): Promise<void> => {
      const holder = orders.slow();
      await eventually(() => expect(runs).toBe(1));
      await test();
      finish.open();
      await holder;
      expect(runs).toBe(1);
    };

    it.each(['refuses', 'waitsABit'] as const)('names the method and the code that called it: %s', async (method) => {
      class Caller {
        async payAll(): Promise<void> {
          await orders[method]();
        }
      }
      await whileBusy(async () => {
        const error = await rejection(new Caller().payAll());
        expect(error).toMatchObject({ group: `Orders.${method}` });
        expect(error.message).toMatch(new RegExp(`^Orders\\.${method}: "slow" is held by `));
        expect(error.stack).toMatch(/ at (async )?Caller\.payAll /);
        expect(error.stack).toContain(error.message);
      });
    });

    it("returns undefined without running, with onBusy: 'skip'", async () => {
      await whileBusy(async () => expect(await orders.skips()).toBeUndefined());
    });

    it('calls the onBusy function on the object of the method, with the arguments of the call', async () => {
      await whileBusy(async () => expect(await orders.mayBePostponed('7', 'urgent')).toBe('postponed'));
      expect(orders.postponed).toEqual([['LOCK_BUSY', '7', 'urgent']]);
    });
  });

  it('does not take a busy error that the method itself throws for a busy resource', async () => {
    expect(await rejection(orders.failsBusily())).toBe(foreign);
  });

  it("aborts the signal when the lease is lost, and returns the result, with onLost: 'ignore'", async () => {
    expect(await orders.outlivesItsLease()).toBe('finished');
  });

  it('rejects with LeaseLostError after the method has ended if its lease is lost', async () => {
    const error = await rejection<LeaseLostError>(orders.mustNotOutliveItsLease());
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ reason: 'expired', workFinished: true, value: 'finished' });
  });

  it("rejects with the method's own error where both happen", async () => {
    expect(await rejection(orders.failsAfterItsLease())).toBe(failure);
  });
});

describe('@DistributedLock with several lock services', () => {
  const start = useApps();

  @Injectable()
  class Invoices {
    @DistributedLock({ key: 'invoice', service: 'billing' })
    async bill(): Promise<void> {
      await finish.opened;
    }

    @DistributedLock({ key: 'invoice', waitMs: 0 })
    async send(): Promise<string> {
      return 'sent';
    }
  }

  it('locks in the service that service names; the others are independent', async () => {
    finish = gate();
    const { app } = await start({ imports: [inMemory(), inMemory({ service: 'billing' })], providers: [Invoices] });
    const billing = app.get<RedisLockService>('RedisLockService:billing');
    const invoices = app.get(Invoices);
    const bill = invoices.bill();
    await eventually(async () => expect((await billing.inspect('invoice')).holders).toHaveLength(1));
    expect(await invoices.send()).toBe('sent');
    finish.open();
    await bill;
  });
});
