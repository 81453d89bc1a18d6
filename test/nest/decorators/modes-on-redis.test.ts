import { Injectable } from '@nestjs/common';
import { DistributedSemaphore, LockModeMismatchError, ReadLock, RedisLockService, WriteLock } from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { inMemory, useApps } from '../nest-apps.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { gate } from '../../support/expect/tracked.js';

/** Which call of which application runs, in order. */
let ran: string[] = [];
let finish = gate();

@Injectable()
class Shop {
  constructor(readonly locks: RedisLockService) {}

  @ReadLock('prices')
  async read(who: string): Promise<number> {
    ran.push(who);
    await finish.opened;
    return this.locks.current()!.fencingToken;
  }

  @WriteLock('prices')
  async write(who: string): Promise<number> {
    ran.push(who);
    await finish.opened;
    return this.locks.current()!.fencingToken;
  }

  @DistributedSemaphore({ key: 'exports', permits: 3 })
  async export(who: string): Promise<void> {
    ran.push(who);
    await finish.opened;
  }

  @DistributedSemaphore({ key: 'exports', permits: 5 })
  async exportOfTheNextVersion(): Promise<void> {}
}

describe('read/write locks and semaphores of applications on one Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useApps();
  let one: Shop;
  let two: Shop;

  beforeEach(async () => {
    finish = gate();
    ran = [];
    // Otherwise a reader that comes within 10 ms may share the lease of the one before it, past the writer that waits.
    const startShop = async () =>
      (await start({ imports: [inMemory({ connection: redis().url, strictOrder: true })], providers: [Shop] })).app.get(
        Shop,
      );
    [one, two] = [await startShop(), await startShop()];
  });
  afterEach(async () => {
    finish.open();
    await eventually(async () => expect(await admin().keys('lock:{*')).toEqual([]));
  });
  const modesOfWaiters = async (resource = 'prices') =>
    (await one.locks.inspect(resource)).waiters.map(({ mode }) => mode);

  it('let readers of both run together, and a writer alone, with growing tokens', async () => {
    const readers = [one.read('reader of one'), two.read('reader of two')];
    await eventually(() => expect(ran.toSorted()).toEqual(['reader of one', 'reader of two']));
    const writer = two.write('writer');
    await eventually(async () => expect(await modesOfWaiters()).toEqual(['write']));
    const late = one.read('late reader');
    await eventually(async () => expect(await modesOfWaiters()).toEqual(['write', 'read']));
    expect(ran).toHaveLength(2);
    finish.open();
    const tokens = await Promise.all([...readers, writer, late]);
    expect(ran.slice(2)).toEqual(['writer', 'late reader']);
    expect(Math.max(tokens[0]!, tokens[1]!)).toBeLessThan(tokens[2]!);
    expect(tokens[2]).toBeLessThan(tokens[3]!);
  });

  it('let no more run than there are permits, over both', async () => {
    const calls = [one.export('1'), two.export('2'), one.export('3')];
    await eventually(() => expect(ran).toHaveLength(3));
    calls.push(two.export('4'), one.export('5'));
    await eventually(async () => expect(await modesOfWaiters('exports')).toEqual(['semaphore', 'semaphore']));
    expect(ran).toHaveLength(3);
    finish.open();
    await Promise.all(calls);
    expect(ran.toSorted()).toEqual(['1', '2', '3', '4', '5']);
  });

  it('tell the instance that states another number of permits, for as long as anybody holds one', async () => {
    const old = one.export('old');
    await eventually(() => expect(ran).toEqual(['old']));
    expect(await rejection(two.exportOfTheNextVersion())).toBeInstanceOf(LockModeMismatchError);
    finish.open();
    await old;
    await two.exportOfTheNextVersion();
  });

  it('let a new version decide on the number while the old one goes on stating its own', async () => {
    const slots = two.locks.semaphore('exports', { permits: 5 });
    await slots.resize(5); // when it starts: nobody holds one
    const old = [one.export('1'), one.export('2'), one.export('3')];
    await eventually(() => expect(ran).toHaveLength(3));
    expect((await one.locks.inspect('exports')).permits).toEqual({ total: 3, available: 0 });
    const lease = await slots.acquire();
    expect((await one.locks.inspect('exports')).permits).toEqual({ total: 5, available: 1 });
    old.push(one.export('4'));
    await eventually(() => expect(ran).toHaveLength(4));
    finish.open();
    await Promise.all([...old, lease.release()]);
  });
});
