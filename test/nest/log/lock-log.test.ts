import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DistributedLock, InvalidLockOptionsError, type LockEvent, RedisLockService } from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { inMemory, useApps } from '../nest-apps.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

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
        /^The lease of "cron:report" .* Its signal has aborted\. The next run may begin beside this one\. See docs/,
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
          'The lease of "reports" is no longer held: Redis no longer has it: it was ended by forceRelease(), deleted, ' +
          'evicted, or lost with the data of a restart or fail-over. Its signal has aborted. See docs/operations/logs.md#a-lease-is-lost.',
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
    expect(first).toMatch(/^Redis could not renew "reports": .*\. It is retried until the lease ends\. See docs/);
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
