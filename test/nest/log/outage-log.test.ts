import { readdirSync, readFileSync } from 'node:fs';
import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { slug } from 'github-slugger';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { LockObservers } from '../../../lib/kernel/events/observers.js';
import { LockEventLog } from '../../../lib/nest/log/lock-event-log.js';
import { describeMissed, MissedLog } from '../../../lib/nest/log/missed-log.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { answered, failing, lostOnTheWay } from '../../support/world/scripted-store.js';
import { LogBook } from '../nest-apps.js';

const LEASE_MS = 3_000;
const MINUTE_MS = 60_000;
const away = failing('notExecuted', 'not connected to Redis at shop-redis:6379');

describe('the log of a lock service whose Redis is unreachable', () => {
  let world: LockWorld;
  let a: Instance;
  let log: LogBook;
  let closing: AbortController;

  beforeEach(() => {
    log = new LogBook();
    Logger.overrideLogger(log);
    world = new LockWorld();
    a = world.instance('a');
    closing = new AbortController();
    new LockEventLog('billing', world.clock).listenTo(a.locks.observers, closing.signal, () => 0);
  });

  afterEach(() => Logger.overrideLogger(false));

  async function holdTwenty(): Promise<Lease[]> {
    return Promise.all(Array.from({ length: 20 }, (_, n) => a.locks.acquire(`job:${n}`, { leaseMs: LEASE_MS })));
  }

  it('has one line for its start and one for its end, with the failures in between', async () => {
    await holdTwenty();
    a.store.fates.renew = away;
    await world.clock.advance(2_500);
    const failed = a.events.filter(({ type }) => type === 'renewalFailed').length;
    expect(failed).toBeGreaterThan(100);
    expect(log.at('warn')).toEqual([
      'Redis could not renew "job:0": not connected to Redis at shop-redis:6379. The renewal is retried until the lease ends. ' +
        'See docs/operations/logs.md#redis-does-not-answer.',
    ]);
    a.store.fates.renew = answered;
    await world.clock.advance(3 * MINUTE_MS);
    expect(log.at('warn').slice(1)).toEqual([
      `Redis answers again after 1.6 s. During the outage, ${failed} renewals failed.`,
    ]);
    expect(new Set(log.lines.map(({ context }) => context))).toEqual(new Set(['RedisLock:billing']));
  });

  it('has a line a minute while it lasts, and says how many leases were lost', async () => {
    await holdTwenty();
    a.store.all(away);
    await world.clock.advance(LEASE_MS);
    // Two lines: the first renewal, and the first loss.
    expect(log.at('warn')).toHaveLength(2);
    await world.clock.advance(MINUTE_MS);
    const [renewals, losses] = log.at('warn').slice(2);
    expect(log.at('warn')).toHaveLength(4);
    expect(renewals).toMatch(
      /^In the last minute, \d+ more renewals failed \(not connected to Redis at shop-redis:6379\): "job:/,
    );
    // Which ones are named: they end at the same time.
    expect(losses).toMatch(
      /^In the last minute, 19 more leases were lost \(notRenewed\): (?:"job:\d+", ){4}"job:\d+" and 14 more\.$/,
    );
    a.store.all(answered);
    await using _next = await a.locks.acquire('next');
    expect(log.at('warn').at(-1)).toMatch(
      /^Redis answers again after 62 s\. During the outage, \d+ renewals failed, and 20 leases were lost\.$/,
    );
  });

  it('speaks of one more lease in the singular', async () => {
    await using _one = await a.locks.acquire('job:1', { leaseMs: LEASE_MS });
    await using _two = await a.locks.acquire('job:2', { leaseMs: LEASE_MS });
    a.store.all(away);
    await world.clock.advance(LEASE_MS);
    closing.abort();
    expect(log.at('warn').at(-1)).toBe('In the last minute, 1 more lease was lost (notRenewed): "job:2".');
    a.store.all(answered);
  });

  it('does not count those leases once more after the line at its end', async () => {
    await holdTwenty();
    a.store.all(away);
    await world.clock.advance(LEASE_MS);
    a.store.all(answered);
    await using _next = await a.locks.acquire('next');
    expect(log.at('warn').at(-1)).toMatch(/and 20 leases were lost\.$/);
    const lines = log.at('warn').length;
    closing.abort();
    expect(log.at('warn')).toHaveLength(lines);
  });

  it('tells of outages that follow each other quickly once a minute', async () => {
    await using _held = await a.locks.acquire('job', { leaseMs: LEASE_MS });
    for (let times = 0; times < 20; times++) {
      a.store.next('renew', away);
      await world.clock.advance(LEASE_MS / 2);
    }
    expect(a.events.filter(({ type }) => type === 'renewalRecovered').length).toBeGreaterThan(10);
    expect(log.at('warn')).toEqual([
      expect.stringMatching(/^Redis could not renew "job"/),
      expect.stringMatching(/^Redis answers again after \d+ ms\. During the outage, 1 renewal failed\.$/),
    ]);
    await world.clock.advance(MINUTE_MS);
    expect(log.at('warn').slice(2)).toEqual([expect.stringMatching(/^In the last minute, \d+ more renewals failed/)]);
  });

  it('is not told that Redis answers by a lock that was handed over in memory', async () => {
    await using _other = await a.locks.acquire('job', { leaseMs: LEASE_MS });
    await world.clock.advance(LEASE_MS / 3 - 5);
    const lease = await a.locks.acquire('stock');
    const next = a.locks.acquire('stock');
    a.store.fates.renew = away;
    await world.clock.advance(8);
    expect(log.at('warn')).toHaveLength(1);
    await lease.release();
    await using _handedOver = await next;
    expect(log.at('warn')).toHaveLength(1);
  });

  it('is not reported as down if it rejects one resource and grants others', async () => {
    await using _job = await a.locks.acquire('job', { leaseMs: LEASE_MS });
    a.store.fates.renew = failing('refused', 'WRONGTYPE Operation against a key');
    await world.clock.advance(2_000);
    await using _other = await a.locks.acquire('other');
    expect(log.at('warn')).toEqual([expect.stringMatching(/^Redis could not renew "job": WRONGTYPE/)]);
  });

  it('listens to no answer as long as nothing fails, nor afterwards', async () => {
    const { observers } = a.locks;
    await using _held = await a.locks.acquire('job', { leaseMs: LEASE_MS });
    await world.clock.advance(2 * LEASE_MS);
    expect(observers.onAnswered).toBeUndefined();
    a.store.fates.renew = away;
    await world.clock.advance(LEASE_MS / 2);
    expect(observers.onAnswered).toBeDefined();
    a.store.fates.renew = answered;
    await world.clock.advance(LEASE_MS / 2);
    expect(observers.onAnswered).toBeUndefined();
  });

  it('takes reasons for one that differ in what was measured', async () => {
    for (let ms = 100; ms < 200; ms++) {
      a.store.next('acquire', failing('unknown', `has not answered for ${ms} ms`));
      await a.locks.tryAcquire(`order:${ms}`).catch(() => {});
    }
    expect(log.at('warn')).toEqual([expect.stringMatching(/^Redis could not acquire "order:100": .* for 100 ms/)]);
    await world.clock.advance(MINUTE_MS);
    expect(log.at('warn').slice(1)).toEqual([
      expect.stringMatching(/^In the last minute, 99 more calls failed \(has not answered for … ms\): "order:101", /),
    ]);
  });

  it('has a line for a lost lease however many reasons calls had to fail', async () => {
    await using _held = await a.locks.acquire('job', { leaseMs: LEASE_MS });
    a.store.fates.renew = lostOnTheWay;
    for (let one = 0; one < 100; one++) {
      const reason = String.fromCharCode(97 + (one % 26)).repeat(1 + one / 26);
      a.store.next('acquire', failing('unknown', reason));
      await a.locks.tryAcquire('order').catch(() => {});
    }
    await world.clock.advance(LEASE_MS);
    expect(log.at('warn').at(-1)).toMatch(/^The lease of "job" is no longer held/);
  });

  describe('while Redis is slow', () => {
    const LATE_MS = 40;
    const impatient = { waitMs: 20 };

    beforeEach(() => {
      a.store.fates.acquire = (execute) =>
        new Promise((resolve) => {
          world.clock.setTimer(() => void execute().then(resolve), LATE_MS);
        });
    });

    it.each([
      ['waits in a queue', {}],
      ['asks again by itself', { retry: fixedInterval({ intervalMs: 5 }) }],
    ] as const)('has no line for a call that %s, and has less time than an answer takes', async (_what, options) => {
      for (let n = 0; n < 1_000; n++) {
        const call = a.locks.acquire(`order:${n}`, { ...impatient, ...options }).catch((error: unknown) => error);
        await world.clock.advance(100);
        expect(await call).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      }
      expect(log.at('warn')).toEqual([]);
    });

    it('has a line when Redis has answered nothing for attemptTimeoutMs', async () => {
      a.store.fates.acquire = lostOnTheWay;
      const fail = async (n: number) => {
        const call = a.locks.acquire(`order:${n}`, impatient).catch(() => {});
        await world.clock.advance(500);
        await call;
      };
      // In the first second.
      for (let n = 0; n < 2; n++) await fail(n);
      expect(log.at('warn')).toEqual([]);
      for (let n = 2; n < 20; n++) await fail(n);
      expect(log.at('warn')).toEqual([
        expect.stringMatching(/^Redis could not acquire "order:2": no answer within 20 ms/),
      ]);
      a.store.fates.acquire = answered;
      await using _lease = await a.locks.acquire('order:1');
      expect(log.at('warn').slice(1)).toEqual([
        expect.stringMatching(/^Redis answers again after \d+(\.\d)? s\. During the outage, 20 calls failed\.$/),
      ]);
    });

    it('logs nothing if such calls are rare and nothing else is sent', async () => {
      a.store.fates.acquire = lostOnTheWay;
      for (let n = 0; n < 5; n++) {
        const call = a.locks.acquire(`order:${n}`, impatient).catch(() => {});
        await world.clock.advance(2 * MINUTE_MS);
        await call;
      }
      expect(log.at('warn')).toEqual([]);
    });
  });

  describe('ends with the first reply', () => {
    async function goAway(): Promise<void> {
      a.store.all(away);
      await a.locks.tryAcquire('order:1').catch(() => {});
      expect(log.at('warn')).toHaveLength(1);
      a.store.all(answered);
    }

    const expectOver = (): void => {
      expect(log.at('warn').slice(1)).toEqual([
        expect.stringMatching(/^Redis answers again after .*\. During the outage, 1 call failed\.$/),
      ]);
    };

    it('that a lock is taken', async () => {
      await world.instance('b').locks.acquire('order:7', { leaseMs: MINUTE_MS });
      await goAway();
      expect(await a.locks.tryAcquire('order:7')).toBeNull();
      expectOver();
    });

    it('to a call that waits on', async () => {
      const held = await world.instance('b').locks.acquire('order:7', { leaseMs: MINUTE_MS });
      await goAway();
      const waiting = a.locks.acquire('order:7', { waitMs: MINUTE_MS });
      await world.clock.advance(100);
      expectOver();
      await held.release();
      await (await waiting).release();
    });

    it('to a renewal of a lease that was never in danger', async () => {
      await using _held = await a.locks.acquire('job', { leaseMs: LEASE_MS });
      await goAway();
      await world.clock.advance(LEASE_MS / 2);
      expectOver();
    });
  });

  it('logs its end even if it began within a minute of another one', async () => {
    const fail = () => a.locks.tryAcquire('order:1').catch(() => {});
    const answer = () => a.locks.using('order:1', {}, () => {});
    a.store.fates.acquire = away;
    await fail();
    a.store.fates.acquire = answered;
    await answer();
    a.store.fates.acquire = away;
    for (let second = 0; second < 150; second++) {
      await fail();
      await world.clock.advance(1_000);
    }
    a.store.fates.acquire = answered;
    await answer();
    expect(log.at('warn').at(-1)).toMatch(/^Redis answers again after 3 min\. During the outage, 150 calls failed\.$/);
  });

  it('tells what it has only counted when the application closes', async () => {
    await holdTwenty();
    a.store.all(lostOnTheWay);
    await world.clock.advance(LEASE_MS);
    expect(log.at('warn')).toHaveLength(1);
    closing.abort();
    expect(log.at('warn')).toEqual([
      expect.stringMatching(/^The lease of "job:0" is no longer held: Redis did not answer for 2 s/),
      expect.stringMatching(/^In the last minute, 19 more leases were lost \(notRenewed\)/),
    ]);
  });

  it('has the same lines on an instance that holds nothing, whose calls fail', async () => {
    a.store.all(away);
    const fail = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, n) => a.locks.tryAcquire(`order:${n}`).catch(() => {})));
    await fail(30);
    expect(log.at('warn')).toEqual([
      'Redis could not acquire "order:0": not connected to Redis at shop-redis:6379. Calls fail with LockUnavailableError ' +
        'until Redis answers. See docs/operations/logs.md#redis-does-not-answer.',
    ]);
    await world.clock.advance(MINUTE_MS);
    expect(log.at('warn').slice(1)).toEqual([
      expect.stringMatching(/^In the last minute, 29 more calls failed \(not connected to Redis at .*\): "order:1", /),
    ]);
    a.store.all(answered);
    const lease = await a.locks.acquire('order:1');
    expect(log.at('warn').slice(2)).toEqual([
      expect.stringMatching(/^Redis answers again after 60 s. During the outage, 30 calls failed.$/),
    ]);
    await lease.release();
  });

  it('has a line for a call that Redis refuses, which is no outage', async () => {
    a.store.next('acquire', failing('refused', 'WRONGTYPE'));
    await a.locks.tryAcquire('order:7').catch(() => {});
    await a.locks.acquire('order:8');
    expect(log.at('warn')).toEqual([
      'Redis could not acquire "order:7": WRONGTYPE. The call has failed. See docs/operations/logs.md#redis-does-not-answer.',
    ]);
  });

  it('has none for a call that finds a lock taken, gives up, or is refused by the shutdown', async () => {
    const other = world.instance('b');
    await other.locks.acquire('order:7', { leaseMs: MINUTE_MS });
    await a.locks.tryAcquire('order:7');
    const waiting = a.locks.acquire('order:7', { waitMs: 1_000 }).catch(() => {});
    await world.clock.advance(1_000);
    await waiting;
    void a.locks.shutdown(0);
    await a.locks.acquire('order:8').catch(() => {});
    expect(log.at('warn')).toEqual([]);
  });
});

const HOUR = 3_600_000;

function missed(times: readonly string[], changes: object = {}) {
  const about = { type: 'tickMissed', service: 'default', group: 'nightly', job: 'nightly', catchUp: false } as const;
  const ticks = times.map((time) => Date.parse(time));
  return { ...about, count: ticks.length, first: ticks[0]!, last: ticks.at(-1)!, ticks, ...changes };
}

function hours(from: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => new Date(Date.parse(from) + index * HOUR).toISOString());
}

describe('the line on missed ticks', () => {
  it.each([
    ['one', hours('2026-01-01T01:00:00Z', 1), '1 tick of job "nightly" was missed: 2026-01-01 01:00 UTC.'],
    [
      'some',
      hours('2026-01-01T01:00:00Z', 3),
      '3 ticks of job "nightly" were missed: 2026-01-01 01:00, 02:00, 03:00 UTC.',
    ],
    [
      'some of two days',
      hours('2026-01-01T23:00:00Z', 2),
      '2 ticks of job "nightly" were missed: 2026-01-01 23:00, 2026-01-02 00:00 UTC.',
    ],
    ['some of a second', ['2026-01-01T01:00:05.000Z'], '1 tick of job "nightly" was missed: 2026-01-01 01:00:05 UTC.'],
    ['many', hours('2026-01-01T01:00:00Z', 9), '9 ticks of job "nightly" were missed: 2026-01-01 01:00 to 09:00 UTC.'],
  ])('names the times: %s', (_, times, begin) => {
    const end =
      times.length === 1
        ? 'No instance claimed it. It will not be caught up.'
        : 'No instance claimed them. They will not be caught up.';
    expect(describeMissed([missed(times)])).toBe(`${begin} ${end}`);
  });

  it('names a job once whose ticks were reported one after another', () => {
    const events = [hours('2026-01-01T01:00:00Z', 1), hours('2026-01-01T02:00:00Z', 2)].map((times) => missed(times));
    expect(describeMissed(events)).toMatch(
      /^3 ticks of job "nightly" were missed: 2026-01-01 01:00, 02:00, 03:00 UTC\./,
    );
  });

  it('says that the ticks were due while all instances were shut down', () => {
    expect(describeMissed([missed(hours('2026-01-01T01:00:00Z', 1), { afterStop: true })])).toBe(
      '1 tick of job "nightly" was missed: 2026-01-01 01:00 UTC. All instances had been shut down, so none claimed it. ' +
        'It will not be caught up.',
    );
  });

  it.each<[string, (job: number) => object, string]>([
    ['no run', () => ({}), 'No instance claimed them. They will not be caught up.'],
    [
      'runs of some',
      (job) => ({ catchUp: job > 4 }),
      'No instance claimed them. One catch-up run follows for 3 of the jobs.',
    ],
    [
      'runs of all',
      () => ({ catchUp: true, afterStop: true }),
      'All instances had been shut down, so none claimed them. One catch-up run follows for each job.',
    ],
  ])('names some jobs and counts the others, those with the most ticks first, with %s', (_, changes, end) => {
    const events = [1, 2, 3, 4, 5, 6, 7].map((job) =>
      missed(hours('2026-01-01T01:00:00Z', job), { job: `job-${job}`, ...changes(job) }),
    );
    expect(describeMissed(events)).toBe(
      '28 ticks of 7 jobs were missed: "job-7" (7), "job-6" (6), "job-5" (5), "job-4" (4), "job-3" (3) and 2 more jobs, ' +
        `2026-01-01 01:00 to 07:00 UTC. ${end}`,
    );
  });
});

describe('the log of missed ticks', () => {
  const LATE = { count: 1, first: 0, last: 0, ticks: [0] };

  function logOf(isProduction = true) {
    const lines: [line: string, isWarning: boolean][] = [];
    const clock = new FakeClock();
    const log = new MissedLog(clock, (...line) => void lines.push(line), isProduction);
    return { log, clock, lines };
  }

  it('is one line for the jobs of a downtime, however many, and one for the next', async () => {
    const { log, clock, lines } = logOf();
    for (let job = 0; job < 150; job++) {
      log.add(missed([], { ...LATE, job: `job-${job}` }));
      // On a busy machine, the last ones are found long after the first.
      await clock.advance(100);
    }
    expect(lines).toEqual([]);
    await clock.advance(5_000);
    expect(lines).toEqual([
      [expect.stringMatching(/^150 ticks of 150 jobs were missed: "job-0" \(1\), .* and 145 more jobs, /), true],
    ]);
    await clock.advance(600_000);
    for (let job = 0; job < 150; job++) {
      log.add(missed([], { ...LATE, job: `job-${job}` }));
      await clock.advance(4_000);
    }
    // Not for ever.
    expect(lines.length).toBeGreaterThan(5);
    await clock.advance(5_000);
    lines.splice(1);
    log.add(missed([], LATE));
    await clock.advance(5_000);
    expect(lines.slice(1)).toEqual([[expect.stringMatching(/^1 tick of job "nightly" was missed/), true]]);
  });

  it.each<[string, boolean, object, boolean]>([
    ['a warning', true, {}, true],
    ['none outside of production', false, {}, false],
    ['none after a shutdown of all instances', true, { afterStop: true }, false],
  ])('is %s', async (_, isProduction, changes, isWarning) => {
    const { log, clock, lines } = logOf(isProduction);
    log.add(missed([], { ...LATE, ...changes }));
    await clock.advance(5_000);
    expect(lines).toEqual([[expect.stringMatching(/See docs\/operations\/logs\.md#ticks-are-missed\.$/), isWarning]]);
  });

  it('is none after a restart, which takes less than a minute, but for a job that missed more', async () => {
    const { log, clock, lines } = logOf();
    const second = (ago: number): string => new Date(clock.wallNow() - ago * 1_000).toISOString();
    log.add(missed([second(2), second(1)]));
    await clock.advance(5_000);
    log.add(missed([second(2), second(1)]));
    log.add(missed([second(120)], { job: 'other' }));
    await clock.advance(5_000);
    expect(lines.map(([, isWarning]) => isWarning)).toEqual([false, true]);
  });

  it('is written at the shutdown, and by the logger of the lock service', () => {
    const written = jest.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    const observers = new LockObservers();
    const closing = new AbortController();
    const log = new LockEventLog();
    log.listenTo(observers, closing.signal, () => 0);
    observers.emit(missed(hours('2026-01-01T01:00:00Z', 1)));
    expect(written).not.toHaveBeenCalled();
    closing.abort();
    observers.emit(missed(hours('2026-01-01T02:00:00Z', 1)));
    log.close();
    const lines = written.mock.calls.map(([line]) => line as unknown);
    written.mockRestore();
    expect(lines).toEqual([
      '1 tick of job "nightly" was missed: 2026-01-01 01:00 UTC. No instance claimed it. It will not be caught up. ' +
        'See docs/operations/logs.md#ticks-are-missed.',
      expect.stringContaining('2026-01-01 02:00 UTC'),
    ]);
  });
});

const ROOT = new URL('../../../', import.meta.url);

/** The sections of the page. */
function sections(): Set<string> {
  const page = readFileSync(new URL('docs/operations/logs.md', ROOT), 'utf8');
  return new Set([...page.matchAll(/^## (.*)$/gm)].map(([, title]) => slug(title!)));
}

describe('the page on the log', () => {
  const rooms = ['lib/nest/log/', 'lib/features/once/nest/'].map((room) => new URL(room, ROOT));
  const files = rooms.flatMap((room) => readdirSync(room).map((file) => new URL(file, room)));
  const namedHere = files.flatMap((file) => {
    const code = readFileSync(file, 'utf8');
    return [...code.matchAll(/\bsee\('([^']+)'\)/g)].map(([, section]) => section!);
  });
  // lib/redis knows no log: it passes the section on.
  const quarantine = readFileSync(new URL('lib/redis/script/restart-quarantine.ts', ROOT), 'utf8');
  const passedOn = [...quarantine.matchAll(/^ +'([a-z-]+)',$/gm)].map(([, section]) => section!);
  const named = [...namedHere, ...passedOn];

  it('has each section that a line names', () => {
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((section) => !sections().has(section))).toEqual([]);
  });

  it('has no section that no line names', () => {
    expect([...sections()].filter((section) => !named.includes(section))).toEqual([]);
  });
});
