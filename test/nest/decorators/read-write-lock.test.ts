import { Injectable } from '@nestjs/common';
import { LockTimeoutError, ReadLock, RedisLockService, WriteLock } from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';
import { gate, track } from '../../support/expect/tracked.js';
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

  @ReadLock('prices')
  async innerRead(): Promise<string | undefined> {
    return this.locks.current()?.mode;
  }
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
});
