import {
  Controller,
  Get,
  Injectable,
  NotFoundException,
  Param,
  ParseIntPipe,
  Scope,
  SetMetadata,
} from '@nestjs/common';
import {
  DistributedSemaphore,
  InjectRedisLock,
  InvalidLockOptionsError,
  LockBusyError,
  LockModeMismatchError,
  LockReentryError,
  LockTimeoutError,
  RedisLockService,
} from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';
import { gate, track } from '../../support/expect/tracked.js';

const failure = new NotFoundException('no such export');
let finish = gate();
let running = 0;
let most = 0;
/** What the key function yields. */
let yielded: unknown;

@Injectable()
class Exports {
  constructor(readonly locks: RedisLockService) {}

  @DistributedSemaphore({ key: 'exports', permits: 3 })
  async run(): Promise<unknown[]> {
    most = Math.max(most, ++running);
    await finish.opened;
    running--;
    const lease = this.locks.current();
    return [lease?.mode, lease?.resource];
  }

  @DistributedSemaphore({ key: (tenant: string) => `exports:${tenant}`, permits: 3, count: 2 })
  async ofTenant(tenant: string, rows: number): Promise<unknown[]> {
    const { permits, holders } = await this.locks.inspect(`exports:${tenant}`);
    return [tenant, rows, permits, holders[0]?.permits];
  }

  @DistributedSemaphore({ key: 'exports', permits: 3, waitMs: 0 })
  async refuses(): Promise<void> {}

  @DistributedSemaphore({ key: 'exports', permits: 3, waitMs: 30 })
  async waitsABit(): Promise<void> {}

  @DistributedSemaphore({ key: 'exports', permits: 3, onBusy: 'skip' })
  async skips(): Promise<string | undefined> {
    return 'ran';
  }

  @DistributedSemaphore({
    key: 'exports',
    permits: 3,
    waitMs: 0,
    onBusy: ({ resource }, rows: number) => `not ${rows}: ${resource}`,
  })
  async fallsBack(_rows: number): Promise<string> {
    return 'ran';
  }

  @DistributedSemaphore({ key: 'exports', permits: 4, onBusy: 'skip' })
  async statesAnotherTotal(): Promise<void> {}

  @DistributedSemaphore({ key: 'exports', permits: 3 })
  async fails(): Promise<void> {
    throw failure;
  }

  @DistributedSemaphore({ key: 'exports', permits: 3, leaseMs: 50, watchdog: false })
  async outlivesItsLease(): Promise<void> {
    const { signal } = this.locks.current()!;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }

  @DistributedSemaphore({ key: 'exports', permits: 3, count: 2 })
  async two(): Promise<string | undefined> {
    return this.skipsTwo();
  }

  @DistributedSemaphore({ key: 'exports', permits: 3, count: 2, onBusy: 'skip' })
  async skipsTwo(): Promise<string | undefined> {
    return 'ran';
  }

  @DistributedSemaphore({ key: () => yielded as string, permits: 3 })
  async broken(): Promise<void> {
    running++;
  }
}

@Injectable({ scope: Scope.TRANSIENT })
class NightlyExports extends Exports {}

describe('@DistributedSemaphore', () => {
  const start = useApps();
  let exports: Exports;
  let locks: RedisLockService;

  beforeEach(async () => {
    finish = gate();
    running = most = 0;
    const { app } = await start({ imports: [inMemory()], providers: [Exports, NightlyExports] });
    exports = app.get(Exports);
    locks = app.get(RedisLockService);
  });
  afterEach(() => finish.open());

  /** Three run and hold all permits. */
  const useUp = async (): Promise<Promise<unknown>[]> => {
    const calls = [exports.run(), exports.run(), exports.run()];
    await eventually(() => expect(running).toBe(3));
    return calls;
  };

  it('runs as many calls at once as there are permits, and the next one when one of them ends', async () => {
    const calls = await useUp();
    calls.push(exports.run(), exports.run());
    await eventually(async () => expect((await locks.inspect('exports')).waiters).not.toEqual([]));
    expect(running).toBe(3);
    finish.open();
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 5 }, () => ['semaphore', 'exports']));
    expect(most).toBe(3);
    expect((await locks.inspect('exports')).holders).toEqual([]);
  });

  it('takes the name from a typed function of the arguments, and several permits at once', async () => {
    expect(await exports.ofTenant('acme', 9)).toEqual(['acme', 9, { total: 3, available: 1 }, 2]);
  });

  it('does what onBusy says, or throws the busy error, while too few permits are free', async () => {
    const calls = await useUp();
    expect(await rejection(exports.refuses())).toBeInstanceOf(LockBusyError);
    expect(await rejection(exports.waitsABit())).toBeInstanceOf(LockTimeoutError);
    expect(await exports.skips()).toBeUndefined();
    expect(await exports.fallsBack(7)).toBe('not 7: exports');
    finish.open();
    await Promise.all(calls);
    expect([await exports.skips(), await exports.fallsBack(7)]).toEqual(['ran', 'ran']);
  });

  it("tells who states another number of permits, also with onBusy: 'skip': it is no matter of waiting", async () => {
    const calls = await useUp();
    const error = await rejection(exports.statesAnotherTotal());
    expect(error).toBeInstanceOf(LockModeMismatchError);
    expect(error.message).toContain('"exports" is in use as a semaphore with 3 permits, and this call states 4');
    finish.open();
    await Promise.all(calls);
  });

  it('tells who uses a name that is locked', async () => {
    await using _lease = await locks.acquire('exports');
    const error = await rejection(exports.run());
    expect(error).toBeInstanceOf(LockModeMismatchError);
    expect(error.message).toContain('Give one of the two another name');
  });

  it('tells who would wait for the permits of its own caller, as the lock service does', async () => {
    const error = await rejection(exports.two());
    expect(error).toBeInstanceOf(LockReentryError);
    expect(error.message).toContain('holds 2 of the 3 permits of "exports" and wants 2 more');
    expect((await locks.inspect('exports')).holders).toEqual([]);
  });

  it("passes the method's own error on as the same object, and releases", async () => {
    expect(await rejection(exports.fails())).toBe(failure);
    expect((await locks.inspect('exports')).holders).toEqual([]);
  });

  it('rejects with the loss if the lease was lost', async () => {
    expect(await rejection(exports.outlivesItsLease())).toMatchObject({ code: 'LEASE_LOST', reason: 'expired' });
  });

  it('works on transient providers and in subclasses', async () => {
    const { app } = await start({ imports: [inMemory()], providers: [NightlyExports] });
    const nightly = await app.resolve(NightlyExports);
    expect(await nightly.ofTenant('acme', 9)).toEqual(['acme', 9, { total: 3, available: 1 }, 2]);
  });

  it.each([
    [
      'several names',
      ['a', 'b'],
      'an array of 2 is not a string. A resource is a non-empty string of at most 512 bytes.',
    ],
    ['undefined', undefined, 'undefined is not a string'],
    ['an empty name', '', 'the name is empty'],
  ])(
    'a key function that gives %s is an InvalidLockOptionsError, and the method does not run',
    async (_, value, why) => {
      yielded = value;
      const error = await rejection(exports.broken());
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toContain(why);
      expect(error.message).toContain('Exports.broken');
      expect(running).toBe(0);
    },
  );

  it('locks in the service that service names', async () => {
    @Injectable()
    class Billing {
      @InjectRedisLock('billing') readonly billing!: RedisLockService;

      @DistributedSemaphore({ key: 'invoices', permits: 1, service: 'billing' })
      async bill(): Promise<string | undefined> {
        return this.billing.current()?.resource;
      }
    }
    const { app } = await start({ imports: [inMemory(), inMemory({ service: 'billing' })], providers: [Billing] });
    expect(await app.get(Billing).bill()).toBe('invoices');
  });

  it('keeps what others read from the method: metadata from above and below, name, length', () => {
    class Reports {
      @SetMetadata('roles', ['admin'])
      @DistributedSemaphore({ key: 'x', permits: 1 })
      @SetMetadata('summary', 'nightly')
      async nightly(_day: string): Promise<void> {}
    }
    const { nightly } = Reports.prototype;
    expect([Reflect.getMetadata('roles', nightly), Reflect.getMetadata('summary', nightly)]).toEqual([
      ['admin'],
      'nightly',
    ]);
    expect([nightly.name, nightly.length]).toEqual(['nightly', 1]);
  });

  it.each(['above', 'below'])('%s @Get: route, parameters and their pipes work', async (where) => {
    @Controller('exports')
    class ExportsController {
      @DistributedSemaphore({ key: (id: number) => `export:${id}`, permits: 2 })
      @Get('above/:id')
      async above(@Param('id', ParseIntPipe) id: number): Promise<unknown> {
        return { id };
      }

      @Get('below/:id')
      @DistributedSemaphore({ key: (id: number) => `export:${id}`, permits: 2 })
      async below(@Param('id', ParseIntPipe) id: number): Promise<unknown> {
        return { id };
      }
    }
    const { url } = await start({ imports: [inMemory()], controllers: [ExportsController] });
    expect(await (await fetch(`${url}/exports/${where}/7`)).json()).toEqual({ id: 7 });
  });

  it('two calls that wait are served in the order they came', async () => {
    const calls = await useUp();
    const order: string[] = [];
    const large = track(locks.semaphore('exports', { permits: 3 }).using({ count: 3 }, () => order.push('large')));
    const small = track(locks.semaphore('exports', { permits: 3 }).using(() => order.push('small')));
    finish.open();
    await Promise.all(calls);
    await eventually(() => expect([large.state, small.state]).toEqual(['fulfilled', 'fulfilled']));
    expect(order).toEqual(['large', 'small']);
  });
});
