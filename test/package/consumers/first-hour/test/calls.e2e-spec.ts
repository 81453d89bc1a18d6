// The calls of an experienced user, beyond those in README.
import { Test, type TestingModule } from '@nestjs/testing';
import { LockBusyError, LockNotHeldError, LockTimeoutError, RedisLockService } from 'nestjs-redis-lock';
import { AppModule } from './../src/app.module.js';

describe('RedisLockService (e2e)', () => {
  let app: TestingModule;
  let locks: RedisLockService;

  beforeAll(async () => {
    app = await Test.createTestingModule({ imports: [AppModule] }).compile();
    await app.init();
    locks = app.get(RedisLockService);
  });

  afterAll(() => app.close());

  it('tryAcquire waits as long as it is told, then there is no lease', async () => {
    const lease = await locks.acquire('cache');
    const from = performance.now();
    expect(await locks.tryAcquire('cache')).toBe(null);
    expect(await locks.tryAcquire('cache', { waitMs: 200 })).toBe(null);
    expect(performance.now() - from).toBeGreaterThan(190);
    const waiting = locks.tryAcquire('cache', { waitMs: 5_000 });
    await lease.release();
    const next = await waiting;
    expect(next!.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next!.release();
  });

  it('tryUsing says whether the work ran', async () => {
    const lease = await locks.acquire('cache');
    expect(await locks.tryUsing('cache', async () => 17)).toEqual({ ran: false });
    await lease.release();
    expect(await locks.tryUsing('cache', async () => 17)).toEqual({ ran: true, value: 17 });
  });

  it('assertLocked and currentOrThrow refuse work without the lock', async () => {
    expect(() => locks.assertLocked('stock')).toThrow(LockNotHeldError);
    expect(() => locks.currentOrThrow()).toThrow(LockNotHeldError);
    await locks.using('stock', async (lease) => {
      locks.assertLocked('stock');
      expect(locks.currentOrThrow('stock')).toBe(lease);
      expect(() => locks.assertLocked('other')).toThrow('"other"');
    });
  });

  it('minHoldMs keeps a resource taken after its release', async () => {
    const lease = await locks.acquire('partner-api', { minHoldMs: 2_000 });
    await lease.release();
    expect(await locks.tryAcquire('partner-api')).toBe(null);
    const next = await locks.acquire('partner-api', { waitMs: 5_000 });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
  });

  it('errors name the holder', async () => {
    const lease = await locks.acquire('report');
    const failure = (waitMs: number) => locks.acquire('report', { waitMs }).catch((error: unknown) => error);
    const busy = await failure(0);
    const timeout = await failure(300);
    await lease.release();
    if (!(busy instanceof LockBusyError && timeout instanceof LockTimeoutError)) throw timeout;
    expect(busy.message).toMatch(/^"report" is held by another call of this process .*Set waitMs to wait for it/);
    expect(timeout.message).toMatch(/^"report" is held by another call of this process .*; waited \d+ ms/);
    expect(busy.holders).toEqual([expect.objectContaining({ fencingToken: lease.fencingToken, mode: 'exclusive' })]);
  });

  if (process.env.REDIS_URL !== 'memory:') {
    it('errors name the process of the holder', async () => {
      const other = await Test.createTestingModule({ imports: [AppModule] }).compile();
      await other.init();
      try {
        const lease = await locks.acquire('report');
        const acquiring = other.get(RedisLockService).acquire('report', { waitMs: 0 });
        const busy = await acquiring.catch((error: unknown) => error);
        await lease.release();
        expect(String(busy)).toMatch(/"report" is held by \S+:\d+:\w+ for \d+ m?s .*Set waitMs to wait for it/);
      } finally {
        await other.close();
      }
    });
  }

  it('releasePermits releases some of several permits', async () => {
    const semaphore = locks.semaphore('exports', { permits: 3 });
    const lease = await semaphore.acquire({ count: 3 });
    expect(await semaphore.tryAcquire()).toBe(null);
    await lease.releasePermits(2);
    const other = await semaphore.acquire({ count: 2, waitMs: 1_000 });
    await Promise.all([lease.release(), other.release()]);
  });

  it('waitUntilFree waits for the release, and takes nothing', async () => {
    const lease = await locks.acquire('report');
    await expect(locks.waitUntilFree('report', { waitMs: 1_500 })).rejects.toBeInstanceOf(LockTimeoutError);
    const free = locks.waitUntilFree('report', { waitMs: 5_000 });
    await lease.release();
    await free;
    expect((await locks.inspect('report')).holders).toEqual([]);
  });
});
