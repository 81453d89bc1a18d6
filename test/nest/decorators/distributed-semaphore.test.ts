import { Injectable, Scope } from '@nestjs/common';
import { DistributedSemaphore, LockBusyError, LockTimeoutError, RedisLockService } from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';
import { gate } from '../../support/expect/tracked.js';
let finish = gate();
let running = 0;
let most = 0;

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
});
