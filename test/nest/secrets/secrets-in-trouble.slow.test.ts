import { Injectable } from '@nestjs/common';
import { Redis, type RedisOptions } from 'ioredis';
import {
  DistributedLock,
  LeaderOnly,
  type Lease,
  LockError,
  type LockEvent,
  type RedisConnectionOption,
  RedisLockService,
} from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { everyTextOf } from './every-text-of.js';
import { inMemory, useApps } from '../nest-apps.js';
import { CommandMonitor } from '../../support/redis/command-monitor.js';
import { startRedis, useRedis } from '../../support/redis/redis-server.js';

const PASSWORD = 'hunter2-of-redis';
const USER = 'locks-user';
/** Before the trouble begins, on a machine that may be busy. */
const PATIENT = { waitMs: 20_000 };

@Injectable()
class Jobs {
  constructor(readonly locks: RedisLockService) {}

  @DistributedLock({ key: 'decorated', waitMs: 50 })
  async decorated(): Promise<void> {}

  @LeaderOnly('leadership')
  async leads(): Promise<void> {}
}

/** The state of an application before the trouble began. */
interface Before {
  readonly lease: Lease;
  readonly writer: Lease;
  readonly several: Lease;
  readonly permit: Lease;
}

/** Whatever can be asked of the locks. */
function everyCall(locks: RedisLockService, jobs: Jobs, before: Before | undefined): Promise<unknown>[] {
  const semaphore = locks.semaphore('permits', { permits: 2 });
  const run = {
    job: 'job',
    tick: 'now',
    overlap: 'skip',
    onCrash: 'retry',
    claimTtlMs: 1_000,
    lock: { waitMs: 50 },
  } as const;
  const calls: Promise<unknown>[] = [
    locks.acquire('a'),
    locks.acquire('a', { mode: 'reentrant', waitMs: 0 }),
    locks.acquire(['a', 'b']),
    locks.tryAcquire('a'),
    locks.using('a', { mode: 'read' }, async () => undefined),
    locks.inspect('a'),
    locks.list(),
    locks.forceRelease('a', { fencingToken: 1 }),
    semaphore.acquire(),
    semaphore.resize(3),
    semaphore.available(),
    locks.runSingleton(run, async () => undefined),
    jobs.decorated(),
    jobs.leads(),
  ];
  if (!before) return calls;
  const { lease, writer, several } = before;
  return [...calls, lease.extend(), lease.verify(), writer.downgrade(), several.extend()];
}

describe('no secret is told by a Redis that', () => {
  const redis = useRedis({
    args: ['--requirepass', PASSWORD, '--user', USER, 'on', `>${PASSWORD}`, '~*', '&*', '+@all'],
  });
  const start = useApps();
  let admin: Redis;
  beforeEach(async () => {
    admin = new Redis({ port: redis().port, password: PASSWORD, disconnectTimeout: 0 });
    admin.on('error', () => undefined);
    await admin.flushall();
  });
  afterEach(() => admin.disconnect());

  const url = (password = PASSWORD) => `redis://${USER}:${password}@127.0.0.1:${redis().port}`;
  const options = (password = PASSWORD): RedisOptions => ({ port: redis().port, username: USER, password });

  const startJobs = async (connection: RedisConnectionOption) => {
    const events: LockEvent[] = [];
    const module = inMemory({
      connection,
      leaseMs: 1_000,
      waitMs: 300,
      attemptTimeoutMs: 300,
      observers: [(event) => events.push(event)],
    });
    const { app, log } = await start({ imports: [module], providers: [Jobs] });
    return { app, log, events, module, locks: app.get(RedisLockService), jobs: app.get(Jobs) };
  };
  type Started = Awaited<ReturnType<typeof startJobs>>;

  const hold = async ({ locks, jobs }: Started): Promise<Before> => {
    await locks.leadership('leadership')!.whenElected();
    await jobs.leads();
    return {
      lease: await locks.acquire('held', PATIENT),
      writer: await locks.acquire('written', { ...PATIENT, mode: 'write' }),
      several: await locks.acquire(['one', 'two'], PATIENT),
      permit: await locks.semaphore('room', { permits: 2 }).acquire(PATIENT),
    };
  };

  /** Secrets of Redis and the owner: all arguments sent to Redis that look like an owner id. */
  const addOwnerIds = (ids: Set<string>): Promise<CommandMonitor> =>
    CommandMonitor.start(admin, (args) => {
      for (const arg of args) for (const [, id] of arg.matchAll(/\/[\w-]{4}\/([\w-]{12,})/g)) ids.add(id!);
    });

  const expectNothingTold = (
    { log, events, locks, jobs, module, app }: Started,
    before: Before | undefined,
    told: unknown[],
    secrets: Iterable<string>,
  ): void => {
    const leases: Lease[] = Object.values(before ?? {});
    const values = [...told, ...events, ...log.calls.flat(), locks, jobs, module, locks.leadership('leadership')];
    values.push(locks.semaphore('x', { permits: 1 }), ...leases, app.get(Jobs));
    for (const lease of leases) values.push(lease.signal, lease.signal.reason);
    const all = values.flatMap((value) => everyTextOf(value)).join('\n');
    for (const secret of [PASSWORD, ...secrets]) {
      expect(secret.length).toBeGreaterThan(8);
      // Not toContain(), which would print all of it.
      const at = all.indexOf(secret);
      if (at >= 0) throw new Error(`A secret is told: ${all.slice(Math.max(0, at - 300), at)}<here>`);
    }
  };

  const outcomes = async (calls: Promise<unknown>[]): Promise<unknown[]> => {
    const settled = await Promise.allSettled(calls);
    return settled.map((result) => (result.status === 'fulfilled' ? result.value : (result.reason as unknown)));
  };

  const CONNECTIONS: [string, (password?: string) => RedisConnectionOption][] = [
    ['a URL', url],
    ['options', options],
    ['a client', (password) => new Redis({ ...options(password), lazyConnect: true })],
  ];

  it.each(CONNECTIONS)('refuses the password (WRONGPASS), given by %s', async (_what, connection) => {
    const wrong = 'not-hunter2-either';
    const app = await startJobs(connection(wrong));
    const told = await outcomes(everyCall(app.locks, app.jobs, undefined));
    expect(
      told.filter((value) => value instanceof LockError && /WRONGPASS/.test(value.message)).length,
    ).toBeGreaterThan(9);
    expectNothingTold(app, undefined, told, [wrong]);
  });

  it('is behind sentinels, which refuse the password too', async () => {
    await using sentinel = await startRedis({ args: ['--requirepass', PASSWORD] });
    const sentinelPassword = 'not-the-one-of-sentinels';
    const app = await startJobs({
      sentinels: [{ host: '127.0.0.1', port: sentinel.port }],
      name: 'main',
      sentinelPassword,
      password: PASSWORD,
    });
    const told = await outcomes(everyCall(app.locks, app.jobs, undefined));
    expect(told.filter((value) => value instanceof LockError).length).toBeGreaterThan(3);
    expectNothingTold(app, undefined, told, [sentinelPassword]);
  });

  const TROUBLES: [string, () => Promise<unknown>, () => Promise<unknown>][] = [
    ['works', async () => undefined, async () => undefined],
    [
      'permits too little (NOPERM)',
      () => admin.call('ACL', 'SETUSER', USER, '-set', '-hset', '-pexpire', '-del', '-scan'),
      () => admin.call('ACL', 'SETUSER', USER, '+@all'),
    ],
    [
      'permits no script (NOPERM)',
      () => admin.call('ACL', 'SETUSER', USER, '-evalsha', '-eval'),
      () => admin.call('ACL', 'SETUSER', USER, '+@all'),
    ],
    [
      'has no memory left (OOM)',
      () => admin.config('SET', 'maxmemory', '1'),
      () => admin.config('SET', 'maxmemory', '0'),
    ],
    [
      'runs a long script (BUSY)',
      async () => {
        await admin.config('SET', 'busy-reply-threshold', '1').catch(() => admin.config('SET', 'lua-time-limit', '1'));
        void admin.eval('while true do end', 0).catch(() => undefined);
        const other = new Redis({ port: redis().port, password: PASSWORD, enableReadyCheck: false });
        await eventually(() => expect(other.ping()).rejects.toThrow(/BUSY/));
        other.disconnect();
      },
      async () => {
        const other = new Redis({ port: redis().port, password: PASSWORD, enableReadyCheck: false });
        await eventually(() => other.script('KILL'));
        other.disconnect();
      },
    ],
    [
      'has something else in the place of the locks (WRONGTYPE)',
      async () => {
        for (const key of ['a', 'held', 'permits', 'decorated', 'cron:job']) await admin.set(`lock:{${key}}`, 'x');
      },
      () => admin.flushall(),
    ],
    ['hangs', () => redis().pause(), () => redis().resume()],
    ['is down', () => redis().kill(), () => redis().restart()],
  ];

  it.each(TROUBLES)('%s', async (_what, begin, end) => {
    const ids = new Set<string>();
    await using _monitor = await addOwnerIds(ids);
    const app = await startJobs(url());
    const before = await hold(app);
    await begin();
    try {
      const told = await outcomes(everyCall(app.locks, app.jobs, before));
      // Longer than a lease: what could not be renewed is lost.
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      told.push(...(await outcomes([before.lease.release(), before.several.release()])));
      expect(ids.size).toBeGreaterThan(5);
      expectNothingTold(app, before, told, ids);
    } finally {
      // Else the next case would wait for a Redis that stays in trouble.
      await end();
    }
  });
});
