import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Get, Injectable, NotFoundException, Query } from '@nestjs/common';
import {
  DistributedLock,
  key,
  LeaseLostError,
  LockAbortedError,
  LockBusyError,
  type LockEvent,
  LockExceptionFilter,
  LockHandler,
  LockNotHeldError,
  LockReentryError,
  ReadLock,
  RedisLockService,
} from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate, track } from '../../support/expect/tracked.js';
import { inMemory, useApps } from '../nest-apps.js';

describe('@DistributedLock', () => {
  const failure = new NotFoundException('no such order');
  const foreign = new LockBusyError('of another library', { attempts: 1, retryAfterMs: 1 });
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
      expect(error.message).toContain('Lock inside the generator');
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
          expect(error.message).toMatch(new RegExp(`^Orders\\.${method}: "slow" has been held by `));
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
});

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

describe("onBusy: 'cancelHolder'", () => {
  let finish = gate();
  let began: string[] = [];
  let stored: string[] = [];

  /** Ends when the test lets it, or when it is asked to stop; stores only in the first case. */
  async function render(text: string, signal: AbortSignal): Promise<string> {
    began.push(text);
    const asked = new Promise((resolve) => signal.addEventListener('abort', resolve));
    await Promise.race([finish.opened, asked]);
    signal.throwIfAborted();
    stored.push(text);
    return text;
  }

  @Injectable()
  class Previews {
    constructor(private readonly locks: RedisLockService) {}

    @DistributedLock({ key: (page: string) => key`page:${page}`, onBusy: 'cancelHolder', cancellable: true })
    async newest(_page: string, text: string): Promise<string> {
      return render(text, this.locks.current()!.signal);
    }

    @DistributedLock({ key: (page: string) => key`page:${page}`, onBusy: 'cancelHolder', cancellable: true })
    async wrapped(_page: string, text: string): Promise<string> {
      const { signal } = this.locks.current()!;
      return render(text, signal).catch((error: unknown) => {
        // As the API of Node wraps it.
        throw signal.aborted ? Object.assign(new Error('stopped', { cause: error }), { name: 'AbortError' }) : error;
      });
    }
  }

  @Controller()
  class PreviewController {
    constructor(private readonly locks: RedisLockService) {}

    @Get('preview')
    @LockHandler({ key: 'preview', onBusy: 'cancelHolder', cancellable: true })
    async preview(@Query('text') text: string): Promise<string> {
      return render(text, this.locks.current()!.signal);
    }

    /** Ends with the error of an API of Node. */
    @Get('wrapped')
    @LockHandler({ key: 'preview', onBusy: 'cancelHolder', cancellable: true })
    async wrapped(@Query('text') text: string): Promise<string> {
      began.push(text);
      if (text === 'a') await sleep(60_000, undefined, { signal: this.locks.current()!.signal });
      else await finish.opened;
      stored.push(text);
      return text;
    }

    @Get('deaf')
    @LockHandler({ key: 'deaf', onBusy: 'cancelHolder', cancellable: true })
    async deaf(@Query('text') text: string): Promise<string> {
      const { signal } = this.locks.current()!;
      began.push(text);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      began.push('asked to stop');
      await finish.opened;
      stored.push(text);
      return text;
    }
  }

  const start = useApps();

  beforeEach(() => {
    finish = gate();
    began = [];
    stored = [];
  });

  it.each(['newest', 'wrapped'] as const)('a method replaces its older calls: %s', async (method) => {
    const { app } = await start({ imports: [inMemory()], providers: [Previews] });
    const previews = app.get(Previews);
    const calls = [previews[method]('7', 'n')];
    await eventually(() => expect(began).toEqual(['n']));
    calls.push(previews[method]('7', 'ne'), previews[method]('7', 'new'));
    const settled = Promise.allSettled(calls);
    const other = previews[method]('8', 'other');
    await eventually(() => expect(began).toEqual(expect.arrayContaining(['n', 'new', 'other'])));
    finish.open();
    const outcomes = await settled;
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
    for (const outcome of outcomes.slice(0, 2) as PromiseRejectedResult[]) {
      expect(outcome.reason).toBeInstanceOf(LockAbortedError);
      expect(outcome.reason).toMatchObject({ reason: 'superseded', resource: 'page:7' });
    }
    expect(await other).toBe('other');
    expect(stored.sort()).toEqual(['new', 'other']);
  });

  it.each(['preview', 'wrapped'])('a request that a newer one replaces is answered with 409: %s', async (path) => {
    const { url } = await start({
      imports: [inMemory()],
      controllers: [PreviewController],
      configure: (app) => app.useGlobalFilters(new LockExceptionFilter()),
    });
    const older = fetch(`${url}/${path}?text=a`);
    await eventually(() => expect(began).toEqual(['a']));
    const newer = fetch(`${url}/${path}?text=b`);
    expect((await older).status).toBe(409);
    expect(await (await older).json()).toMatchObject({
      code: 'LOCK_ABORTED',
      message: 'A newer request replaces this one.',
    });
    await eventually(() => expect(began).toEqual(['a', 'b']));
    finish.open();
    expect((await newer).status).toBe(200);
    expect(stored).toEqual(['b']);
  });

  it.each<[string, object, string]>([
    ['several resources', { key: ['a', 'b'] }, 'may have another holder'],
    ['a shared mode', { key: 'a', mode: 'read' }, 'mode read'],
    ['a call that does not wait', { key: 'a', waitMs: 0 }, 'Set waitMs'],
    ['a minimum', { key: 'a', minHoldMs: 5 }, 'Leave minHoldMs out'],
  ])('is refused when the class is defined, with %s', (_what, options, why) => {
    for (const newest of [{ onBusy: 'cancelHolder' }, { cancellable: true }]) {
      expect(() => {
        class Wrong {
          @DistributedLock({ ...options, ...newest } as unknown as { key: string })
          async run(): Promise<void> {}
        }
        return Wrong;
      }).toThrow(why);
    }
  });

  it('is rejected if several callers hold the resource', () => {
    expect(() => {
      class Wrong {
        @ReadLock({ key: 'a', onBusy: 'cancelHolder' } as unknown as { key: string })
        async run(): Promise<void> {}
      }
      return Wrong;
    }).toThrow(/onBusy/);
  });
});
