import { Controller, Get, Injectable, NotFoundException, Param, ParseIntPipe, SetMetadata } from '@nestjs/common';
import {
  DistributedLock,
  LockBusyError,
  LockReentryError,
  LockTimeoutError,
  ReadLock,
  RedisLockService,
  WriteLock,
} from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { inMemory, PLATFORMS, useApps } from '../nest-apps.js';
import { gate, track } from '../../support/expect/tracked.js';

const failure = new NotFoundException('no such price');
let finish = gate();
let running: string[] = [];

@Injectable()
class Prices {
  constructor(readonly locks: RedisLockService) {}

  @ReadLock('prices')
  async read(who: string): Promise<string | undefined> {
    running.push(who);
    await finish.opened;
    return this.locks.current('prices')?.mode;
  }

  @WriteLock('prices')
  async write(who: string): Promise<string | undefined> {
    running.push(who);
    await finish.opened;
    return this.locks.current('prices')?.mode;
  }

  @ReadLock((region: string) => `prices:${region}`)
  async ofRegion(region: string, currency: string): Promise<unknown[]> {
    const lease = this.locks.current();
    return [lease?.mode, lease?.resource, region, currency];
  }

  @WriteLock({ key: (from: string, to: string) => [`prices:${from}`, `prices:${to}`] })
  async copy(_from: string, _to: string): Promise<unknown[]> {
    const lease = this.locks.current();
    return [lease?.mode, ...(lease?.resources ?? [])];
  }

  @ReadLock(['a', 'b'])
  async readBoth(): Promise<unknown[]> {
    const lease = this.locks.current();
    return [lease?.mode, ...(lease?.resources ?? [])];
  }

  @WriteLock({ key: 'prices', onBusy: 'skip' })
  async writesOrSkips(): Promise<string | undefined> {
    return 'wrote';
  }

  @ReadLock({ key: 'prices', waitMs: 0, onBusy: ({ resource }, page: number) => `not ${page}: ${resource}` })
  async readsOrFallsBack(_page: number): Promise<string> {
    return 'read';
  }

  @ReadLock({ key: 'prices', waitMs: 30 })
  async readsSoon(): Promise<void> {}

  @WriteLock({ key: 'prices', leaseMs: 50, watchdog: false })
  async writesTooLong(): Promise<void> {
    const { signal } = this.locks.current()!;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }

  @WriteLock('prices')
  async fails(): Promise<void> {
    throw failure;
  }

  @ReadLock('prices')
  async readsTwice(): Promise<unknown[]> {
    return [this.locks.current()?.mode, await this.innerRead()];
  }

  @WriteLock('prices')
  async writesAndReads(): Promise<unknown[]> {
    return [await this.innerWrite(), await this.innerRead()];
  }

  @ReadLock('prices')
  async readsAndWrites(): Promise<unknown> {
    return this.innerWrite();
  }

  @ReadLock('prices')
  async readsAndLocks(): Promise<unknown> {
    return this.locksIt();
  }

  @WriteLock('prices')
  async writesAndDowngrades(): Promise<string | undefined> {
    const lease = this.locks.current()!;
    await lease.downgrade();
    return this.read('after the downgrade');
  }

  @ReadLock('prices')
  async innerRead(): Promise<string | undefined> {
    return this.locks.current()?.mode;
  }

  @WriteLock('prices')
  async innerWrite(): Promise<string | undefined> {
    return this.locks.current()?.mode;
  }

  @DistributedLock('prices')
  async locksIt(): Promise<void> {}
}

/** Inherits what is locked, and locks more. */
@Injectable()
class ListPrices extends Prices {
  @WriteLock('list')
  override async innerRead(): Promise<string | undefined> {
    return super.innerRead();
  }
}

describe('@ReadLock and @WriteLock', () => {
  const start = useApps();
  let prices: Prices;
  let locks: RedisLockService;

  beforeEach(async () => {
    finish = gate();
    running = [];
    const { app } = await start({ imports: [inMemory()], providers: [Prices, ListPrices] });
    prices = app.get(Prices);
    locks = app.get(RedisLockService);
  });
  afterEach(() => finish.open());

  it('let readers run together, and a writer only when they have ended', async () => {
    const readers = [prices.read('one'), prices.read('two')];
    await eventually(() => expect(running).toEqual(['one', 'two']));
    const writer = track(prices.write('writer'));
    await eventually(async () => expect((await locks.inspect('prices')).waiters).toMatchObject([{ mode: 'write' }]));
    expect(running).toEqual(['one', 'two']);
    finish.open();
    expect(await Promise.all(readers)).toEqual(['read', 'read']);
    await eventually(() => expect(writer.state).toBe('fulfilled'));
    expect([writer.value, running]).toEqual(['write', ['one', 'two', 'writer']]);
    expect((await locks.inspect('prices')).holders).toEqual([]);
  });

  it('let a writer run alone: neither readers nor another writer beside it', async () => {
    const writer = prices.write('writer');
    await eventually(() => expect(running).toEqual(['writer']));
    const others = [prices.read('reader'), prices.write('another')].map((call) => track(call));
    await eventually(async () => expect((await locks.inspect('prices')).waiters).not.toEqual([]));
    expect(running).toEqual(['writer']);
    finish.open();
    await writer;
    await eventually(() => expect(others.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled']));
    expect(running).toEqual(['writer', 'reader', 'another']);
  });

  it('make a reader that comes behind a waiting writer wait for it: writers do not starve', async () => {
    const early = prices.read('early');
    await eventually(() => expect(running).toEqual(['early']));
    const behind = [prices.write('writer'), prices.read('late')];
    await eventually(async () => expect((await locks.inspect('prices')).waiters).not.toEqual([]));
    expect(running).toEqual(['early']);
    finish.open();
    await Promise.all([early, ...behind]);
    expect(running).toEqual(['early', 'writer', 'late']);
  });

  it('take a name, several, or a typed function of the arguments, which arrive unchanged', async () => {
    expect(await prices.ofRegion('eu', 'EUR')).toEqual(['read', 'prices:eu', 'eu', 'EUR']);
    expect(await prices.copy('us', 'eu')).toEqual(['write', 'prices:eu', 'prices:us']);
    expect(await prices.readBoth()).toEqual(['read', 'a', 'b']);
  });

  it('do what onBusy says, or throw the busy error, while somebody writes', async () => {
    const writer = prices.write('writer');
    await eventually(() => expect(running).toEqual(['writer']));
    expect(await prices.writesOrSkips()).toBeUndefined();
    expect(await prices.readsOrFallsBack(2)).toBe('not 2: prices');
    expect(await rejection(prices.readsSoon())).toBeInstanceOf(LockTimeoutError);
    expect(await locks.tryAcquire('prices', { mode: 'read' })).toBeNull();
    finish.open();
    await writer;
    expect([await prices.writesOrSkips(), await prices.readsOrFallsBack(2)]).toEqual(['wrote', 'read']);
  });

  it('a writer is busy while somebody reads, and a reader is not', async () => {
    const reader = prices.read('reader');
    await eventually(() => expect(running).toEqual(['reader']));
    expect(await prices.writesOrSkips()).toBeUndefined();
    expect(await prices.readsOrFallsBack(2)).toBe('read');
    expect(await rejection(locks.acquire('prices', { waitMs: 0 }))).toBeInstanceOf(LockBusyError);
    finish.open();
    await reader;
  });

  it("passes the method's own error on as the same object, and releases", async () => {
    expect(await rejection(prices.fails())).toBe(failure);
    expect((await locks.inspect('prices')).holders).toEqual([]);
  });

  it('rejects with the loss if the lease was lost', async () => {
    expect(await rejection(prices.writesTooLong())).toMatchObject({ code: 'LEASE_LOST', reason: 'expired' });
  });

  describe('on methods that call one another', () => {
    it('a reader may read again, and a writer may write and read', async () => {
      expect(await prices.readsTwice()).toEqual(['read', 'read']);
      expect(await prices.writesAndReads()).toEqual(['write', 'read']);
      expect((await locks.inspect('prices')).holders).toEqual([]);
    });

    it('a reader that would write is told at once why it cannot, and what to do', async () => {
      const error = await rejection(prices.readsAndWrites());
      expect(error).toBeInstanceOf(LockReentryError);
      expect(error.message).toContain('two readers that tried would wait for each other for ever');
      expect((await locks.inspect('prices')).holders).toEqual([]);
    });

    it('a reader that would lock exclusively as well', async () => {
      expect(await rejection(prices.readsAndLocks())).toBeInstanceOf(LockReentryError);
    });

    it('a writer that has become a reader lets others read beside it', async () => {
      const one = prices.writesAndDowngrades();
      await eventually(() => expect(running).toEqual(['after the downgrade']));
      const other = prices.read('other');
      await eventually(() => expect(running).toEqual(['after the downgrade', 'other']));
      finish.open();
      expect(await Promise.all([one, other])).toEqual(['read', 'read']);
    });
  });

  it('are inherited, and nest with those of the subclass', async () => {
    const { app } = await start({ imports: [inMemory()], providers: [ListPrices] });
    expect(await app.get(ListPrices).readsTwice()).toEqual(['read', 'read']);
    expect(await app.get(ListPrices).ofRegion('eu', 'EUR')).toEqual(['read', 'prices:eu', 'eu', 'EUR']);
  });

  it('keep what others read from the method: metadata from above and below, name, length, parameter types', () => {
    class Reports {
      @SetMetadata('roles', ['admin'])
      @ReadLock('x')
      @SetMetadata('summary', 'nightly')
      async nightly(_day: string, _dry: boolean = false): Promise<void> {}
    }
    const { nightly } = Reports.prototype;
    expect([Reflect.getMetadata('roles', nightly), Reflect.getMetadata('summary', nightly)]).toEqual([
      ['admin'],
      'nightly',
    ]);
    expect([nightly.name, nightly.length]).toEqual(['nightly', 1]);
    expect(Reflect.getMetadata('design:paramtypes', Reports.prototype, 'nightly')).toEqual([String, Boolean]);
  });
});

@Controller('prices')
class PricesController {
  constructor(private readonly locks: RedisLockService) {}

  @ReadLock((id: number) => `price:${id}`)
  @Get('above/:id')
  async above(@Param('id', ParseIntPipe) id: number): Promise<unknown> {
    return { id, mode: this.locks.current(`price:${id}`)?.mode };
  }

  @Get('below/:id')
  @ReadLock((id: number) => `price:${id}`)
  async below(@Param('id', ParseIntPipe) id: number): Promise<unknown> {
    return { id, mode: this.locks.current(`price:${id}`)?.mode };
  }
}

describe.each(PLATFORMS)('@ReadLock on the routes of %s', (_, adapter) => {
  const start = useApps();

  it.each(['above', 'below'])('%s @Get: route, parameters and their pipes work', async (where) => {
    const { url } = await start({ imports: [inMemory()], controllers: [PricesController], adapter: adapter() });
    expect(await (await fetch(`${url}/prices/${where}/7`)).json()).toEqual({ id: 7, mode: 'read' });
    expect((await fetch(`${url}/prices/${where}/seven`)).status).toBe(400);
  });
});
