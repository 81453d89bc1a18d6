import { Controller, Get, Inject } from '@nestjs/common';
import {
  DistributedLock,
  DistributedSemaphore,
  type LockEvent,
  LockExceptionFilter,
  LockHandler,
  ReadLock,
  RedisLockService,
  WriteLock,
} from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';
import { gate } from '../../support/expect/tracked.js';

let finish = gate();
let running: string[] = [];

@Controller('prices')
class PricesController {
  @Inject() readonly locks!: RedisLockService;

  @Get('read')
  @LockHandler({ key: 'prices', mode: 'read' })
  async read(): Promise<unknown> {
    running.push('read');
    await finish.opened;
    return this.locks.current()?.mode;
  }

  @Get('write')
  @LockHandler({ key: 'prices', mode: 'write', waitMs: 0 })
  async write(): Promise<unknown> {
    running.push('write');
    await finish.opened;
    return this.locks.current()?.mode;
  }

  @Get('export')
  @LockHandler({ key: 'exports', permits: 2, waitMs: 0 })
  async export(): Promise<unknown> {
    running.push('export');
    await finish.opened;
    return this.locks.current()?.mode;
  }

  @Get('read-read')
  @LockHandler({ key: 'prices', mode: 'read' })
  @ReadLock('prices')
  async readRead(): Promise<unknown> {
    return this.locks.current()?.mode;
  }

  @Get('read-write')
  @LockHandler({ key: 'prices', mode: 'read' })
  @WriteLock('prices')
  async readWrite(): Promise<unknown> {
    running.push('read-write');
    return this.locks.current()?.mode;
  }

  @Get('read-exclusive')
  @LockHandler({ key: 'prices', mode: 'read' })
  @DistributedLock('prices')
  async readExclusive(): Promise<unknown> {
    running.push('read-exclusive');
    return this.locks.current()?.mode;
  }

  @Get('write-read')
  @LockHandler({ key: 'prices', mode: 'write' })
  @ReadLock('prices')
  async writeRead(): Promise<unknown> {
    return this.locks.current()?.mode;
  }

  @Get('exclusive-write')
  @LockHandler('prices')
  @WriteLock('prices')
  async exclusiveWrite(): Promise<unknown> {
    return this.locks.current()?.mode;
  }

  @Get('one-two')
  @LockHandler({ key: 'exports', permits: 3 })
  @DistributedSemaphore({ key: 'exports', permits: 3, count: 2 })
  async oneTwo(): Promise<unknown> {
    return (await this.locks.inspect('exports')).permits?.available;
  }

  @Get('other-total')
  @LockHandler({ key: 'exports', permits: 3 })
  @DistributedSemaphore({ key: 'exports', permits: 4 })
  async otherTotal(): Promise<unknown> {
    running.push('other-total');
    return 'ran';
  }

  @Get('lock-semaphore')
  @LockHandler('exports')
  @DistributedSemaphore({ key: 'exports', permits: 4 })
  async lockSemaphore(): Promise<unknown> {
    running.push('lock-semaphore');
    return 'ran';
  }
}

describe('@LockHandler in the other modes', () => {
  const start = useApps();
  let events: LockEvent[];
  const startShop = async () => {
    events = [];
    const observers = [(event: LockEvent) => events.push(event)];
    const shop = await start({
      imports: [inMemory({ observers })],
      controllers: [PricesController],
      configure: (app) => app.useGlobalFilters(new LockExceptionFilter()),
    });
    const get = async (path: string): Promise<[number, string]> => {
      const response = await fetch(`${shop.url}/prices/${path}`);
      return [response.status, await response.text()];
    };
    return { ...shop, get };
  };
  const acquired = () => events.flatMap((event) => (event.type === 'acquired' ? [event.mode] : []));

  beforeEach(() => {
    finish = gate();
    running = [];
  });
  afterEach(() => finish.open());

  it('answers concurrent readers, and a writer with 423', async () => {
    const { get } = await startShop();
    const readers = [get('read'), get('read')];
    await eventually(() => expect(running).toEqual(['read', 'read']));
    expect((await get('write'))[0]).toBe(423);
    finish.open();
    expect(await Promise.all(readers)).toEqual([
      [200, 'read'],
      [200, 'read'],
    ]);
    expect(await get('write')).toEqual([200, 'write']);
  });

  it('with permits: answers so many requests at once, and 423 to one more', async () => {
    const { get, app } = await startShop();
    const exports = [get('export'), get('export')];
    await eventually(() => expect(running).toEqual(['export', 'export']));
    expect((await get('export'))[0]).toBe(423);
    finish.open();
    expect(await Promise.all(exports)).toEqual([
      [200, 'semaphore'],
      [200, 'semaphore'],
    ]);
    expect((await app.get(RedisLockService).inspect('exports')).holders).toEqual([]);
  });

  describe('on a method that is decorated for the same resource', () => {
    it.each([
      ['read-read', 'read', ['read']],
      ['write-read', 'write', ['write']],
      ['exclusive-write', 'exclusive', ['exclusive']],
    ])('locks once where the request holds as much as the method wants: %s', async (path, mode, modes) => {
      const { get } = await startShop();
      expect(await get(path)).toEqual([200, mode]);
      expect(acquired()).toEqual(modes);
    });

    it.each(['read-write', 'read-exclusive'])(
      'does not take a reader for somebody who is alone: %s is refused, and the method does not run',
      async (path) => {
        const { get, log } = await startShop();
        const [status, body] = await get(path);
        expect([status, JSON.parse(body).code, running]).toEqual([500, 'LOCK_REENTRY', []]);
        expect(log.at('error').join()).toMatch(/^This async context .*holds "prices"/);
      },
    );

    it('also takes the locks of the method if they differ', async () => {
      const { get } = await startShop();
      expect(await get('one-two')).toEqual([200, '0']);
      expect(acquired()).toEqual(['semaphore', 'semaphore']);
    });

    it.each(['other-total', 'lock-semaphore'])(
      'does not hide that the two take it for different things: %s is 500, and logged',
      async (path) => {
        const { get, log } = await startShop();
        const [status, body] = await get(path);
        expect([status, JSON.parse(body).code, running]).toEqual([500, 'LOCK_MODE_MISMATCH', []]);
        expect(log.at('error').join()).toContain('"exports"');
      },
    );
  });
});
