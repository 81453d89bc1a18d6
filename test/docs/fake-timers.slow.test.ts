import { jest } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type Lease,
  LockTimeoutError,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { RedisLockTestingModule } from 'nestjs-redis-lock/testing';
import { useRedis } from '../support/redis/redis-server.js';

const redis = useRedis();
const real = { setTimeout, clearTimeout };
afterEach(() => jest.useRealTimers());

// The snippet of docs/guide/testing.md.
it('a second call waits for 10 s, the first keeps its lease', async () => {
  jest.useFakeTimers();
  const testing = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot({ connection: 'memory:' })],
  }).compile();
  const locks = testing.get(RedisLockService);
  const held = await locks.acquire('order:7');

  const waiting = locks
    .acquire('order:7', { waitMs: 10_000 })
    .catch((error: unknown) => error);
  await jest.advanceTimersByTimeAsync(10_000);
  expect(await waiting).toBeInstanceOf(LockTimeoutError);

  // the watchdog keeps renewing the lease
  await jest.advanceTimersByTimeAsync(120_000);
  held.assertHeld();
  await held.release();
  await testing.close();
  jest.useRealTimers();
});

const RUNS_THE_CLIENT = [
  'nextTick',
  'setImmediate',
  'queueMicrotask',
] as const;

/** The outcome, or a note that it hangs: it had none after this much real time. */
async function outcomeOf<T>(
  promise: Promise<T>,
  withinMs: number,
): Promise<T | string> {
  let timer: NodeJS.Timeout | undefined;
  const hangs = new Promise<string>(
    (resolve) =>
      (timer = real.setTimeout(() => resolve('hangs'), withinMs)),
  );
  const outcome = await Promise.race([promise, hangs]).catch(
    (error: Error) => error.constructor.name,
  );
  real.clearTimeout(timer);
  return outcome;
}

describe('what docs/guide/testing.md says of fake timers', () => {
  let testing: TestingModule;
  let locks: RedisLockService;
  let held: Lease;

  async function start(connection: string): Promise<void> {
    testing = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ connection })],
    }).compile();
    await testing.init();
    locks = testing.get(RedisLockService);
    held = await locks.acquire('order:7', { leaseMs: 3_000 });
  }
  afterEach(async () => {
    jest.useRealTimers();
    await held.release();
    await testing.close();
  });

  it('in memory, a call that nothing advances hangs', async () => {
    jest.useFakeTimers();
    await start('memory:');
    const second = locks.acquire('order:7', { waitMs: 100 });
    expect(await outcomeOf(second, 300)).toBe('hangs');
    await jest.advanceTimersByTimeAsync(100);
    await expect(second).rejects.toThrow(LockTimeoutError);
  });

  it("with the kit's real clock, fake timers are the clock too", async () => {
    jest.useFakeTimers();
    testing = await Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot()],
    }).compile();
    locks = testing.get(RedisLockService);
    held = await locks.acquire('order:7', { leaseMs: 3_000 });
    const second = locks
      .acquire('order:7', { waitMs: 10_000 })
      .catch((error: unknown) => error);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await outcomeOf(second, 300)).toBeInstanceOf(LockTimeoutError);
    expect(held.isHeld()).toBe(true);
  });

  it('with a real Redis, all fake timers stop the client before it has connected', async () => {
    jest.useFakeTimers();
    const started = start(redis().url);
    expect(await outcomeOf(started, 500)).toBe('hangs');
    // Now they run, so that the test can end.
    let hasStarted = false;
    void started.then(() => (hasStarted = true));
    while (!hasStarted) {
      await jest.advanceTimersByTimeAsync(1);
      await new Promise((resolve) => real.setTimeout(resolve, 1));
    }
  });

  it('with a real Redis, calls are answered where what runs the client is real', async () => {
    jest.useFakeTimers({ doNotFake: [...RUNS_THE_CLIENT] });
    await start(redis().url);
    expect(await held.verify()).toBe(true);
    await held.release();
    held = await locks.acquire('order:7');
  });
});
