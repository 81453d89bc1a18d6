import { Logger } from '@nestjs/common';
import { LockEventLog } from '../../../lib/nest/log/lock-event-log.js';
import type { Lease } from '../../../lib/core/api/lease.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { answered, failing, lostOnTheWay } from '../../support/world/scripted-store.js';
import { LogBook } from '../nest-apps.js';

const LEASE_MS = 3_000;
const MINUTE_MS = 60_000;
const away = failing('notExecuted', 'not connected to Redis at shop-redis:6379');

describe('the log of a lock service whose Redis is away', () => {
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

  it('has one line when it begins and one when it is over, with what failed meanwhile', async () => {
    await holdTwenty();
    a.store.fates.renew = away;
    await world.clock.advance(2_500);
    const failed = a.events.filter(({ type }) => type === 'renewalFailed').length;
    expect(failed).toBeGreaterThan(100);
    expect(log.at('warn')).toEqual([
      'Redis could not renew "job:0": not connected to Redis at shop-redis:6379. It is tried again until the lease ends. ' +
        'See docs/operations/logs.md#redis-does-not-answer.',
    ]);
    a.store.fates.renew = answered;
    await world.clock.advance(3 * MINUTE_MS);
    expect(log.at('warn').slice(1)).toEqual([`Redis answers again after 1.6 s. Meanwhile ${failed} renewals failed.`]);
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
    expect(losses).toBe(
      'In the last minute, 19 more leases were lost (notRenewed): "job:1", "job:2", "job:3", "job:4", "job:5" and 14 more.',
    );
    a.store.all(answered);
    await using _next = await a.locks.acquire('next');
    expect(log.at('warn').at(-1)).toMatch(
      /^Redis answers again after 62 s\. Meanwhile \d+ renewals failed, and 20 leases were lost\.$/,
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
      expect.stringMatching(/^Redis answers again after \d+ ms\. Meanwhile 1 renewal failed\.$/),
    ]);
    await world.clock.advance(MINUTE_MS);
    expect(log.at('warn').slice(2)).toEqual([expect.stringMatching(/^In the last minute, \d+ more renewals failed/)]);
  });

  it('is not told that Redis answers by a lock that was handed over in memory', async () => {
    const lease = await a.locks.acquire('stock', { localHandOversMs: 5_000 });
    const next = a.locks.acquire('stock', { localHandOversMs: 5_000 });
    await using _other = await a.locks.acquire('job', { leaseMs: LEASE_MS });
    a.store.fates.renew = away;
    await world.clock.advance(1_100);
    await lease.release();
    await using _handedOver = await next;
    expect(log.at('warn')).toHaveLength(1);
  });

  it('is not said to be away where it refuses one resource, and grants others', async () => {
    await using _job = await a.locks.acquire('job', { leaseMs: LEASE_MS });
    a.store.fates.renew = failing('refused', 'WRONGTYPE Operation against a key');
    await world.clock.advance(2_000);
    await using _other = await a.locks.acquire('other');
    expect(log.at('warn')).toEqual([expect.stringMatching(/^Redis could not renew "job": WRONGTYPE/)]);
  });

  it('listens to no acquisition as long as nothing fails', async () => {
    const observed: unknown[] = [];
    const { observers } = a.locks;
    const add = observers.add.bind(observers);
    observers.add = (observer, types) => {
      observed.push(types);
      return add(observer, types);
    };
    await using _held = await a.locks.acquire('job', { leaseMs: LEASE_MS });
    await world.clock.advance(2 * LEASE_MS);
    expect(observed).toEqual([]);
    a.store.next('renew', away);
    await world.clock.advance(LEASE_MS);
    expect(observed).toEqual([['acquired']]);
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
      expect.stringMatching(/^Redis answers again after 60 s. Meanwhile 30 calls failed.$/),
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
