import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, InvalidLockOptionsError, type LockEvent, RedisLockService } from 'nestjs-redis-lock';
import { LockEventLog } from '../../../lib/nest/log/lock-event-log.js';
import { RepeatedLines } from '../../../lib/nest/log/repeated-lines.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { inMemory, LogBook, useApps } from '../nest-apps.js';

@Injectable()
class Reports {
  constructor(readonly locks: RedisLockService) {}

  /** If the event loop is blocked for a quarter of the lease, it logs a warning about that, too. */
  @DistributedLock({ key: 'reports', leaseMs: 6_000 })
  async build(duringWork: () => unknown): Promise<unknown> {
    return this.#reasonOfLoss(duringWork);
  }

  /** Several renewals can fail before the lease ends. */
  @DistributedLock({ key: 'reports', leaseMs: 5_000, attemptTimeoutMs: 100 })
  async buildWithSpare(duringWork: () => unknown): Promise<unknown> {
    return this.#reasonOfLoss(duringWork);
  }

  async #reasonOfLoss(duringWork: () => unknown): Promise<unknown> {
    const { signal } = this.locks.current()!;
    const lost = new Promise((resolve) => signal.addEventListener('abort', resolve));
    await duringWork();
    await Promise.race([lost, sleep(30_000, undefined, { ref: false })]);
    return signal.reason;
  }

  @DistributedLock('quiet')
  async quiet(): Promise<string> {
    return 'done';
  }
}

/** On a busy machine, a call may also say that it waits for an answer. */
const isStep = (type: string): boolean => type !== 'waiting';

describe('the log and the observers', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useApps();
  const startReports = async (options: Parameters<typeof inMemory>[0] = {}) => {
    const events: LockEvent[] = [];
    const imports = [inMemory({ connection: redis().url, observers: [(event) => events.push(event)], ...options })];
    const { app, log } = await start({ imports, providers: [Reports] });
    return { log, events, reports: app.get(Reports), locks: app.get(RedisLockService) };
  };

  it.each([[undefined], [null], ['log']])('an observer that is %p is refused', async (observer) => {
    const { locks } = await startReports();
    expect(() => locks.observe(observer as never)).toThrow(InvalidLockOptionsError);
  });

  it.each([
    ['production', 1],
    ['test', 0],
    ['', 0],
  ])('locks that are kept in memory: with NODE_ENV=%s %d warning', async (environment, warnings) => {
    const before = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = environment;
    try {
      const { log } = await startReports({ connection: 'memory:' });
      expect(log.at('warn')).toEqual(
        Array(warnings).fill(expect.stringMatching(/connection: 'memory:'.*no other process.*NODE_ENV/s)),
      );
    } finally {
      process.env['NODE_ENV'] = before;
    }
  });

  it('say nothing of a working day in the log; the observers see each step', async () => {
    const { log, events, reports, locks } = await startReports();
    await reports.quiet();
    await using _held = await locks.acquire('busy');
    expect(await locks.tryAcquire('busy')).toBeNull();
    const seen = events.map(({ type }) => type).filter(isStep);
    expect(seen).toEqual(['acquired', 'released', 'acquired', 'notAcquired']);
    expect([...log.at('warn'), ...log.at('error')]).toEqual([]);
  });

  it('tell that the next run of a job may begin beside one that lost its lease', async () => {
    const { app, log } = await start({ imports: [inMemory()] });
    const job = { job: 'report', tick: 'one', overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000 } as const;
    await app.get(RedisLockService).runSingleton({ ...job, lock: { maxHoldMs: 300 } }, async ({ signal }) => {
      await eventually(() => expect(signal.aborted).toBe(true));
    });
    // If the event loop is blocked for longer than the lease, that is in the log, too.
    expect(log.at('warn').filter((line) => line.startsWith('The lease of'))).toEqual([
      expect.stringMatching(
        /^The lease of "cron:report" .* Its signal has aborted\. The next run may start while this one is still running\. See docs/,
      ),
    ]);
  });

  it('tell that a lease was lost because its key is gone, under the name of the library', async () => {
    const { log, events, reports } = await startReports();
    const reason = await rejection(reports.build(() => admin().del('lock:{reports}')));
    expect(reason).toMatchObject({ code: 'LEASE_LOST', reason: 'takenOver' });
    expect(log.lines.filter(({ level }) => level === 'warn')).toEqual([
      {
        level: 'warn',
        context: 'RedisLock',
        message:
          'The lease of "reports" is no longer held: Redis no longer has this lease, because it was ended by forceRelease(), deleted, ' +
          'evicted, or lost in a restart or a failover. Its signal has aborted. See docs/operations/logs.md#a-lease-is-lost.',
      },
    ]);
    await eventually(() => expect(events.map(({ type }) => type)).toEqual(['acquired', 'lost', 'releasedAfterLoss']));
  });

  it('tell of renewals that fail, and then of the loss', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    // The start waits for Redis for one attempt: long enough on the slowest machine, or it warns first. Only the
    // attempts of the lease are short.
    const { log, events, reports } = await startReports({ connection: proxy.url, attemptTimeoutMs: 30_000 });
    const reason = await rejection(
      reports.buildWithSpare(() => {
        proxy.blackHole('toServer');
        proxy.cut();
      }),
    );
    expect(reason).toMatchObject({ reason: 'notRenewed' });
    // On a busy machine the connection comes later than the application, and that is said first.
    const warnings = log.at('warn').filter((line) => !line.startsWith('The application starts'));
    const [first, last] = [warnings[0], warnings.at(-1)];
    expect(first).toMatch(
      /^Redis could not renew "reports": .*\. The renewal is retried until the lease ends\. See docs/,
    );
    expect(last).toMatch(
      /^The lease of "reports" is no longer held: Redis confirmed no renewal for .* Its signal has aborted\. See /,
    );
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['renewalFailed', 'lost', 'releasedAfterLoss']),
    );
    proxy.heal();
  });

  it('an observer that throws breaks nothing, and one can be taken off again', async () => {
    const { reports, locks } = await startReports({
      observers: [
        () => {
          throw new Error('of the observer');
        },
      ],
    });
    const seen: string[] = [];
    const stop = locks.observe(({ type }) => seen.push(type));
    expect(await reports.quiet()).toBe('done');
    stop();
    expect(await reports.quiet()).toBe('done');
    expect(seen.filter(isStep)).toEqual(['acquired', 'released']);
  });
});

describe('the log of leases', () => {
  let world: LockWorld;
  let a: Instance;
  let log: LogBook;

  beforeEach(() => {
    log = new LogBook();
    Logger.overrideLogger(log);
    world = new LockWorld();
    a = world.instance('a');
    new LockEventLog('billing', world.clock).listenTo(a.locks.observers, new AbortController().signal, () => 0);
  });

  afterEach(() => Logger.overrideLogger(false));

  const pass = (ms: number) => new Promise<void>((resolve) => world.clock.setTimer(resolve, ms));

  it('that are held for long is one line a minute, with the group and the way out', async () => {
    const options = { warnAfterMs: 60_000, group: 'Orders.pay' };
    const works = ['order:7', 'order:8', 'order:\u202e9'].map((name) =>
      a.locks.using(name, options, () => pass(100_000)),
    );
    await world.clock.advance(60_000);
    expect(log.at('warn')).toEqual([
      '"order:7" has been held for 60 s (group "Orders.pay"), longer than warnAfterMs. Other calls for it wait until it is released. ' +
        'Hold the lock for less time, or raise warnAfterMs. See docs/operations/logs.md#a-lease-is-held-for-a-long-time.',
    ]);
    await world.clock.advance(60_000);
    expect(log.at('warn').slice(1)).toEqual([
      String.raw`In the last minute, 2 more leases were held for a long time: "order:8", "order:\u202e9".`,
    ]);
    await Promise.all(works);
  });

  it('names no group if there is none', async () => {
    const work = a.locks.using('order 7', { warnAfterMs: 60_000 }, () => pass(100_000));
    await world.clock.advance(100_000);
    await work;
    const { observers } = a.locks;
    const call = observers.describeCall('order 7', { mode: 'write' });
    observers.emit({ ...call, type: 'leaked', fencingToken: 32, heldMs: 700, callSite: undefined, isRenewed: true });
    expect(log.at('warn')).toEqual([
      expect.stringContaining('"order 7" has been held for 60 s, longer than warnAfterMs.'),
      expect.stringContaining('The lease of "order 7" (mode write) was not released, and nothing'),
    ]);
  });

  it('that have leaked, with the kind of work that they were for', () => {
    const { observers } = a.locks;
    const leaked = (resource: string) => ({
      ...observers.describeCall(resource, { mode: 'write', group: 'Reports.run' }),
      type: 'leaked' as const,
      fencingToken: 32,
      heldMs: 700,
      callSite: 'run (report.ts:3:4)',
      isRenewed: true,
    });
    observers.emit(leaked('report:1'));
    expect(log.at('warn')).toEqual([
      'The lease of "report:1" (mode write, group "Reports.run") was not released, and nothing references it any longer, so ' +
        'nothing can release it. It was acquired at run (report.ts:3:4). The lease is renewed for as long as this process lives, ' +
        'so no other call gets the lock. Use locks.using(), await using, or release it in a finally. ' +
        'See docs/operations/logs.md#a-lease-leaks.',
    ]);
  });

  it('that are taken inside each other in orders that make a cycle', async () => {
    const both = (outer: string, inner: string) => a.locks.using(outer, {}, () => a.locks.using(inner, {}, () => {}));
    await both('order:7', 'stock:1');
    await both('stock:2', 'order:8');
    await both('stock:3', 'order:9');
    expect(log.at('warn')).toEqual([
      expect.stringMatching(
        /^Locks are taken in different orders, so calls can wait for each other: a deadlock\. A call that held "order:7", at \S.*lock-log\.test\.ts:\d+:\d+\)?, wanted "stock:1", at .*\. A call that held "stock:2", at .* wanted "order:8", at .*\. Take them in one order everywhere, or all in one call\. See docs\/operations\/logs\.md#locks-are-taken-in-different-orders\.$/,
      ),
    ]);
  });

  it('that were at risk while the event loop was blocked', async () => {
    await a.locks.acquire('order:7', { leaseMs: 3_000 });
    await world.clock.advance(500);
    world.clock.block(1_900);
    await world.clock.advance(1);
    expect(log.at('warn')).toEqual([
      'The event loop was blocked for at least 1.6 s. The lease of "order:7" (leaseMs: 3000) was not renewed during that time, ' +
        'and has 568 ms left. Keep synchronous work short, give the process more CPU, or raise leaseMs. ' +
        'See docs/operations/logs.md#the-event-loop-is-blocked.',
    ]);
    world.clock.block(5_000);
    await world.clock.advance(60_000);
    expect(log.at('warn')).toEqual([
      expect.any(String),
      expect.stringMatching(/^The lease of "order:7" is no longer held/),
      'In the last minute, the event loop was blocked 1 more time while this process held "order:7".',
    ]);
  });
});

const MINUTE_MS = 60_000;

describe('lines that repeat', () => {
  let clock: FakeClock;
  let written: string[];
  let lines: RepeatedLines;
  const add = (kind: string, resource: string, text?: string): boolean =>
    lines.add(
      kind,
      resource,
      `${text ?? kind} of ${resource}`,
      (more, names) => `${more} more ${kind}: ${names}`,
      text,
    );

  beforeEach(() => {
    clock = new FakeClock();
    written = [];
    lines = new RepeatedLines(clock, (line) => written.push(line));
  });

  it('are written once, and then summed up each minute, with the names of five', async () => {
    expect(add('loss', 'a')).toBe(true);
    for (const name of ['b', 'c', 'b', 'd', 'e', 'f', 'g', 'h']) expect(add('loss', name)).toBe(false);
    expect(written).toEqual(['loss of a']);
    await clock.advance(MINUTE_MS);
    expect(written.slice(1)).toEqual(['8 more loss: "b", "c", "d", "e", "f" and 2 more']);
    add('loss', 'x');
    await clock.advance(MINUTE_MS);
    expect(written.slice(2)).toEqual(['1 more loss: "x"']);
  });

  it('leave no timer behind once they are closed: what is counted is written, and each line after that', () => {
    add('loss', 'a');
    add('loss', 'b');
    lines.close();
    add('loss', 'c');
    add('loss', 'd');
    expect(written).toEqual(['loss of a', '1 more loss: "b"', 'loss of c', 'loss of d']);
    expect(clock.timers).toBe(0);
  });

  it('of another kind are written', () => {
    add('loss', 'a');
    add('leak', 'a');
    expect(written).toEqual(['loss of a', 'leak of a']);
  });

  it('of more than fifty kinds count as one kind, so that texts from elsewhere fill no memory', async () => {
    for (let text = 0; text < 1_000; text++) add('failure', 'a', `text ${text}`);
    expect(written).toHaveLength(51);
    expect(clock.timers).toBe(51);
    await clock.advance(MINUTE_MS);
    expect(written.at(-1)).toBe('In the last minute, 949 more lines were left out, about "a".');
  });

  it('without such a text are written however many kinds there are', () => {
    for (let text = 0; text < 1_000; text++) add('failure', 'a', `text ${text}`);
    expect(add('loss', 'a')).toBe(true);
    expect(written.at(-1)).toBe('loss of a');
  });

  it('escape what a name could do to a terminal', () => {
    add('loss', 'a');
    add('loss', '\u001b[2J\u202e');
    lines.flush();
    expect(written.at(-1)).toBe('1 more loss: "\\u001b[2J\\u202e"');
  });
});

describe('the hint at shutdown hooks', () => {
  const redis = useRedis();
  const start = useApps();
  const others = process.rawListeners('SIGTERM') as (() => void)[];
  beforeEach(() => others.forEach((listener) => process.off('SIGTERM', listener)));
  afterEach(() => others.forEach((listener) => process.on('SIGTERM', listener)));
  const hints = (lines: readonly string[]) => lines.filter((line) => line.includes('SIGTERM'));

  it('logs once that nothing listens for SIGTERM', async () => {
    const { log } = await start({ imports: [inMemory({ connection: redis().url, leaseMs: 5_000 })] });
    await eventually(() =>
      expect(hints(log.at('log'))).toEqual([
        'Nothing listens for SIGTERM: the signal will end this process without releasing its locks. They stay ' +
          'locked for up to 5 s (leaseMs). Call app.enableShutdownHooks(). See docs/guide/getting-started.md#development.',
      ]),
    );
  });

  it('says to a process without a server how it ends', async () => {
    const log = new LogBook();
    const imports = [inMemory({ connection: redis().url, leaseMs: 5_000 })];
    const app = await Test.createTestingModule({ imports }).setLogger(log).compile();
    await app.init();
    await eventually(() =>
      expect(hints(log.at('log'))).toEqual([
        'Nothing listens for SIGTERM: the signal will end this process without releasing its locks. They stay ' +
          'locked for up to 5 s (leaseMs). Call app.enableShutdownHooks(). When your work is done, call app.close(): ' +
          'connections to Redis keep the process alive. See docs/guide/getting-started.md#development.',
      ]),
    );
    await app.close();
  });

  it('is not logged with the hooks, even late ones, nor without a Redis', async () => {
    const { app, log } = await start({
      imports: [inMemory({ connection: redis().url }), inMemory({ service: 'other' })],
    });
    app.enableShutdownHooks();
    await sleep(1_200);
    expect(hints(log.at('log'))).toEqual([]);
    await app.close();
    const inProcess = await start({ imports: [inMemory()] });
    await sleep(1_200);
    expect(hints(inProcess.log.at('log'))).toEqual([]);
  });
});
