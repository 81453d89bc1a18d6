import { jest } from '@jest/globals';
import { Global, Module, type OnModuleDestroy } from '@nestjs/common';
import { LockShutdownError, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { inMemory, useApps } from '../nest-apps.js';
import { eventually } from '../../support/expect/eventually.js';
import { gate, track } from '../../support/expect/tracked.js';

let stopped = gate();

class Server implements OnModuleDestroy {
  /** Lets its requests end, like Apollo's. */
  async onModuleDestroy(): Promise<void> {
    await stopped.opened;
  }
}

/** Imported before the lock module and global as that is, so it is destroyed after it. */
@Global()
@Module({})
class LateServer extends Server {}

/** Not global, so it is destroyed before the lock module. */
@Module({})
class EarlyServer extends Server {}

describe('from its own onModuleDestroy on', () => {
  const start = useApps();
  beforeEach(() => void (stopped = gate()));
  afterEach(() => {
    stopped.open();
    jest.restoreAllMocks();
  });

  it('the lock service is down, ends its waits, and takes new locks only for work under a lease', async () => {
    const { app } = await start({ imports: [LateServer, inMemory({ shutdown: { drainMs: 10_000 } })] });
    const locks = app.get(RedisLockService);
    const begun = gate();
    const working = track(
      locks.using('order:7', async () => {
        await begun.opened;
        return locks.using('customer:1', async () => 'both');
      }),
    );
    const waiting = track(locks.acquire('order:7', { waitMs: 60_000 }));
    await eventually(async () => expect((await locks.health()).waiting).toBe(1));
    const closing = track(app.close());
    await eventually(() => expect(waiting.error).toBeInstanceOf(LockShutdownError));
    expect(await locks.health()).toMatchObject({ status: 'down', problems: [{ code: 'SHUTDOWN' }] });
    await expect(locks.acquire('free')).rejects.toBeInstanceOf(LockShutdownError);
    begun.open();
    await eventually(() => expect(working.value).toBe('both'));
    expect(closing.state).toBe('pending');
    stopped.open();
    await eventually(() => expect(closing.state).toBe('fulfilled'));
  });

  it('and until then, hooks of modules that are destroyed before it take locks', async () => {
    const { app } = await start({ imports: [inMemory(), EarlyServer] });
    const locks = app.get(RedisLockService);
    const closing = track(app.close());
    await new Promise((resolve) => setImmediate(resolve));
    await locks.using('flush', async () => {});
    expect((await locks.health()).status).toBe('up');
    stopped.open();
    await eventually(() => expect(closing.state).toBe('fulfilled'));
    await expect(locks.acquire('late')).rejects.toBeInstanceOf(LockShutdownError);
  });

  it('no timer of the first second after the start is left', async () => {
    const [set, cleared] = [jest.spyOn(globalThis, 'setTimeout'), jest.spyOn(globalThis, 'clearTimeout')];
    const { app } = await start({ imports: [RedisLockModule.forRoot({ connection: { port: 1 } })] });
    await app.close();
    const ofASecond = set.mock.results.filter((_, call) => set.mock.calls[call]![1] === 1_000);
    expect(ofASecond.length).toBeGreaterThan(0);
    const left = ofASecond.filter(({ value }) => !cleared.mock.calls.some(([timer]) => timer === value));
    expect(left).toEqual([]);
  });
});
