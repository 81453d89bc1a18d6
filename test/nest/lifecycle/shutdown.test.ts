import { jest } from '@jest/globals';
import { Global, Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { DistributedLock, LockShutdownError, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate, track } from '../../support/expect/tracked.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { inMemory, useApps } from '../nest-apps.js';

let finish = gate();
let story: string[] = [];

@Injectable()
class Jobs {
  constructor(readonly locks: RedisLockService) {}

  @DistributedLock('job')
  async long(): Promise<string> {
    story.push('began');
    await finish.opened;
    story.push('ended');
    return 'done';
  }

  @DistributedLock({ key: 'job', mode: 'reentrant' })
  async nesting(): Promise<string> {
    story.push('began');
    await finish.opened;
    return this.inner();
  }

  @DistributedLock({ key: 'job', mode: 'reentrant' })
  async inner(): Promise<string> {
    return 'entered again';
  }

  @DistributedLock('other')
  async other(): Promise<void> {
    story.push('other');
  }

  @DistributedLock('job')
  async untilAborted(): Promise<unknown> {
    const { signal } = this.locks.current()!;
    story.push('began');
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return signal.reason;
  }
}

describe('when the application closes', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useApps();
  beforeEach(() => {
    finish = gate();
    story = [];
  });
  afterEach(() => finish.open());
  const lockKeys = (): Promise<string[]> => admin().keys('lock:{*');

  const startJobs = async (drainMs: number) => {
    const { app, log } = await start({
      imports: [inMemory({ connection: redis().url, shutdown: { drainMs } })],
      providers: [Jobs],
    });
    return { app, log, jobs: app.get(Jobs), locks: app.get(RedisLockService) };
  };

  it('waits for a running method, whose lock it then releases', async () => {
    const { app, jobs } = await startJobs(20_000);
    const work = jobs.long();
    await eventually(() => expect(story).toEqual(['began']));
    const closing = track(app.close());
    expect(await rejection(jobs.other())).toBeInstanceOf(LockShutdownError); // it has begun to close
    await eventually(async () => expect(await lockKeys()).toEqual(['lock:{job}']));
    expect(closing.state).toBe('pending');
    finish.open();
    expect(await work).toBe('done');
    await eventually(() => expect(closing.state).toBe('fulfilled'));
    expect(story).toEqual(['began', 'ended']);
    expect(await lockKeys()).toEqual([]);
  });

  it('says what it waits for, and how that ended', async () => {
    const { app, locks, log } = await startJobs(20_000);
    const readers = Array.from({ length: 2 }, () => locks.acquire('order:0', { mode: 'read' }));
    const others = Array.from({ length: 6 }, (_, index) => locks.acquire(`order:${index + 1}`));
    const leases = await Promise.all([...readers, ...others]);
    const closing = app.close();
    const lines = () => log.lines.filter(({ context }) => context === 'RedisLock');
    await eventually(() => expect(lines()).toHaveLength(1));
    await Promise.all(leases.map((lease) => lease.release()));
    await closing;
    expect(lines()).toMatchObject([
      {
        level: 'log',
        message:
          'Closing: waiting up to 20 s (shutdown.drainMs) for 8 leases: ' +
          '"order:0", "order:1", "order:2", "order:3", "order:4" and 2 more.',
      },
      { level: 'log', message: expect.stringMatching(/^Closing: all leases were released after [\d.]+ m?s\.$/) },
    ]);
  });

  it("does not wait with 'memory:', for a test may end with leases that it did not release", async () => {
    const { app, log } = await start({ imports: [RedisLockModule.forRoot({ connection: 'memory:' })] });
    const lease = await app.get(RedisLockService).acquire('never');
    const isLost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    const closing = track(app.close());
    await isLost;
    expect(log.lines.filter(({ message }) => message.startsWith('Closing'))).toEqual([]);
    await eventually(() => expect(closing.state).toBe('fulfilled'));
  });

  it('what hangs does not hold it up for longer, and its lock stays until it expires: nobody runs beside it', async () => {
    const { app, jobs } = await startJobs(0);
    const hanging = jobs.long();
    await eventually(() => expect(story).toEqual(['began']));
    await app.close();
    expect(await admin().pttl('lock:{job}')).toBeGreaterThan(0);
    finish.open();
    expect(await hanging).toBe('done'); // too late for the lock, but its own result stands
  });
});

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
