import { LeaseLostError } from '../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { LOCK_DEFAULTS, type LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import type { LockClientOptions } from '../../../lib/kernel/wire.js';
import { resolveModuleOptions } from '../../../lib/nest/module/module-options.js';
import { gate, track } from '../../support/expect/tracked.js';
import { ProcessClock } from '../../support/simulation/simulated-process.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, lostOnTheWay, repliedWhen } from '../../support/world/scripted-store.js';
import { Fleet } from '../../support/world/singleton-fleet.js';

const LEASE_MS = 3_000;

/** By the holder's own clock: 1 % and 2 ms before the lock may expire in Redis. */
const DEADLINE_MS = LEASE_MS - 32;

describe('losing a lease', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('aborts the signal no later than the deadline, even while Redis hangs', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    const lostAt: number[] = [];
    const begin = world.clock.now();
    lease.signal.addEventListener('abort', () => lostAt.push(world.clock.now() - begin));
    a.store.all(lostOnTheWay);
    await world.clock.advance(DEADLINE_MS - 1);
    expect(lease.isHeld()).toBe(true);
    await world.clock.advance(1);
    expect(lostAt).toEqual([DEADLINE_MS]);
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'notRenewed', resource: 'stock' });
  });

  it('is detected by isHeld() itself when the process was blocked and the timers are late', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    const { signal } = lease;
    world.clock.block(LEASE_MS);
    expect(signal.aborted).toBe(false); // no timer has run yet
    expect(lease.isHeld()).toBe(false);
    expect(signal.aborted).toBe(true);
  });

  it('is not undone by a renewal that was on its way when the process was blocked', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    const reply = gate();
    a.store.next('renew', repliedWhen(reply.opened));
    await world.clock.advance(1_000); // it is sent, and would be good until 1000 + DEADLINE_MS
    world.clock.block(DEADLINE_MS - 500);
    reply.open();
    await settle();
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: 'notRenewed' });
  });

  it('sends no renewal once the deadline has passed, whatever timer fires first', async () => {
    await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    world.clock.block(LEASE_MS);
    await world.clock.advance(LEASE_MS * 10);
    expect(a.store.sent('renew')).toEqual([]);
  });

  it('is emitted to the observers, once, with its reason', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    a.store.all(lostOnTheWay);
    await world.clock.advance(LEASE_MS * 3);
    lease.isHeld();
    expect(eventsOf(a, 'lost')).toMatchObject([
      {
        type: 'lost',
        resource: 'stock',
        fencingToken: lease.fencingToken,
        reason: 'notRenewed',
        error: lease.signal.reason,
      },
    ]);
  });

  it('still sends one release, because a late renewal may have kept the lock; no other holder is affected', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    a.store.fates.renew = lostOnTheWay;
    await world.clock.advance(LEASE_MS);
    const next = await b.locks.acquire('stock');
    await lease.release();
    expect(a.store.sent('release')).toHaveLength(1);
    expect(eventsOf(a, 'releasedAfterLoss')).toMatchObject([{ resource: 'stock' }]);
    expect(eventsOf(a, 'released')).toEqual([]);
    expect(await next.verify()).toBe(true);
  });
});

function lossOf(lease: Lease): string {
  const reason: unknown = lease.signal.reason;
  expect(reason).toBeInstanceOf(LeaseLostError);
  return (reason as Error).message;
}

describe('the error of a lease that was not renewed in time', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  it.each([
    ['asks the lease before its timers run', 0],
    ['hears of it from the late timer', 1],
  ])('has the time that the event loop was blocked, if the process %s', async (_how, timers) => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    const { signal } = lease;
    await world.clock.advance(500);
    world.clock.block(5_000);
    if (timers) await world.clock.advance(0);
    expect(lossOf(lease)).toBe(
      'The lease of "stock" is no longer held: no renewal was confirmed before its deadline, because the event loop ' +
        'was blocked for at least 4.8 s. Keep synchronous work short, give the process more CPU, or ' +
        'raise leaseMs (3000).',
    );
    expect(signal.aborted).toBe(true);
  });

  it('has the blocked event loop even if a renewal was pending when it began', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    a.store.next('renew', lostOnTheWay);
    await world.clock.advance(1_000);
    world.clock.block(LEASE_MS);
    expect(lossOf(lease)).toMatch(/blocked for at least 2.8 s/);
  });

  it('has the time without a reply of Redis, if the timers were on time', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    a.store.all(lostOnTheWay);
    await world.clock.advance(LEASE_MS);
    expect(lossOf(lease)).toBe(
      'The lease of "stock" is no longer held: Redis did not answer for 2 s. ' +
        'Raise leaseMs (3000) if leases have to outlive such an outage.',
    );
  });

  it('has the reply of Redis to the last renewal', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    a.store.fates.renew = failing('notExecuted', 'READONLY You can not write against a read only replica');
    await world.clock.advance(LEASE_MS);
    expect(lossOf(lease)).toMatch(
      /Redis confirmed no renewal for 2 s \(READONLY You can not write .*\)\. Raise leaseMs/,
    );
  });

  it('does not blame a block that ended before the last confirmed renewal', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    await world.clock.advance(500);
    world.clock.block(1_900);
    await world.clock.advance(100); // late, and confirmed
    expect(lease.isHeld()).toBe(true);
    a.store.all(lostOnTheWay);
    await world.clock.advance(2 * LEASE_MS);
    expect(lossOf(lease)).toMatch(/Redis did not answer for 2 s/);
  });
});

describe('renewals that fail and then succeed', () => {
  it('are reported once to the observers, with the number of failures and their duration', async () => {
    const world = new LockWorld();
    const a = world.instance('a');
    const lease = await a.locks.acquire('stock', { leaseMs: LEASE_MS });
    const { fencingToken } = lease;
    a.store.fates.renew = () => Promise.reject(new LockStoreError('notExecuted', 'LOADING'));
    await world.clock.advance(1_500); // sent at 1000, 1200 and 1400
    a.store.fates.renew = undefined;
    await world.clock.advance(LEASE_MS);
    expect(eventsOf(a, 'renewalFailed')).toHaveLength(3);
    expect(eventsOf(a, 'renewalRecovered')).toMatchObject([
      { type: 'renewalRecovered', resource: 'stock', fencingToken, failures: 3, failedForMs: 600 },
    ]);
    expect(lease.isHeld()).toBe(true);
  });
});

const TERMS: LockOptions = { leaseMs: LEASE_MS, waitMs: Infinity };

/** A pause is longer than a lease, the tries of a withdrawal, and the memory of late grants (two leases). */
describe.each([3 * LEASE_MS, 3_600_000])('a process that is blocked for %d ms', (pauseMs) => {
  let world: LockWorld;
  let clock: ProcessClock;
  /** The instance that is blocked. */
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    clock = new ProcessClock(world.clock, 0, 1);
    a = world.instance('a', { clock });
    b = world.instance('b');
    // Its commands are executed, but it reads no replies until it resumes.
    a.store.all(async (execute) => {
      try {
        return await execute();
      } finally {
        await new Promise<void>((resolve) => clock.whenAwake(resolve));
      }
    });
    a.store.grantFate = (deliver) => clock.whenAwake(deliver);
  });

  /** Blocks it; the other one gets the lock as soon as it is free. */
  async function block(): Promise<Lease> {
    clock.stop();
    const waiting = track(b.locks.acquire('stock', TERMS));
    await world.clock.advance(pauseMs);
    clock.continue();
    await world.clock.advance(2 * LEASE_MS);
    return waiting.value;
  }

  async function nothingIsLeft(next: Lease): Promise<void> {
    expect([next.isHeld(), await next.verify()]).toEqual([true, true]);
    await next.release();
    await world.clock.advance(2 * LEASE_MS);
    expect([world.server.isEmpty, world.clock.timers]).toEqual([true, 0]);
    expect(a.locks.stats().orphanReleases).toBe(0);
  }

  it('with a command on its way finds the grant expired, and requests it again', async () => {
    const acquiring = track(a.locks.acquire('stock', TERMS));
    const next = await block();
    expect(acquiring.state).toBe('pending');
    await next.release();
    await settle();
    await acquiring.value.release();
    expect(acquiring.value.fencingToken).toBeGreaterThan(next.fencingToken);
    expect(world.server.isEmpty).toBe(true);
  });

  it('after it gave up: a grant in that time ends with its lease, and its message changes nothing', async () => {
    const holder = await b.locks.acquire('stock', TERMS);
    const controller = new AbortController();
    // Its question is executed; the withdrawal is not.
    a.store.next('release', lostOnTheWay);
    const waiting = track(a.locks.acquire('stock', { ...TERMS, signal: controller.signal }));
    await settle();
    controller.abort();
    clock.stop();
    await holder.release(); // grants it to the one who has given up
    const next = await block();
    expect(waiting.error).toMatchObject({ code: 'LOCK_ABORTED' });
    expect(a.store.grants).not.toHaveLength(0);
    await nothingIsLeft(next);
    expect(a.locks.stats().lateGrants).toBeLessThanOrEqual(1);
  });

  it('after it gave up, with its request still on its way: the grant ends with its lease', async () => {
    let arrive = (): void => {};
    // The reply, and the message, are never read: the connection broke.
    a.store.next('acquire', (execute) => new Promise((resolve) => (arrive = () => void execute().then(() => resolve))));
    const controller = new AbortController();
    const waiting = track(a.locks.acquire('stock', { ...TERMS, signal: controller.signal }));
    await settle();
    controller.abort();
    await settle();
    expect(waiting.error).toMatchObject({ code: 'LOCK_ABORTED' });
    clock.stop();
    await world.clock.advance(pauseMs);
    arrive();
    clock.continue();
    const next = track(b.locks.acquire('stock', TERMS));
    await world.clock.advance(LEASE_MS - 1);
    expect(next.state).toBe('pending');
    await world.clock.advance(1_000);
    await nothingIsLeft(next.value);
  });
});

describe('a blocked event loop', () => {
  const LEASE_MS = 12_000;
  /** The interval of the watchdog. */
  const CHECK_MS = LEASE_MS / 12;

  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  const told = () => eventsOf(a, 'eventLoopBlocked');

  /** Returns the reports about a blocked event loop that begins `atMs` after the grant. */
  async function block(atMs: number, forMs: number) {
    world = new LockWorld();
    a = world.instance('a');
    const lease = await a.locks.acquire('order:7', { leaseMs: LEASE_MS });
    await world.clock.advance(atMs);
    world.clock.block(forMs);
    await world.clock.advance(1);
    expect(told().length).toBeLessThan(2);
    return { lease, event: told()[0] };
  }

  it('is reported if it lasts longer than a third of a lease, whenever it begins', async () => {
    // Three renewals, in steps that meet no timer.
    for (let atMs = 0; atMs < LEASE_MS; atMs += 97) {
      const { lease, event } = await block(atMs, LEASE_MS / 3 + 1);
      const leftMs = Math.max(0, lease.remainingMs());
      expect({ atMs, lost: !lease.isHeld() }).toEqual({ atMs, lost: false });
      expect({ atMs, event }).toMatchObject({ atMs, event: { resource: 'order:7', leaseMs: LEASE_MS } });
      // Never more than it was, and what is missing is less than a check. The renewal has moved the deadline since.
      expect(event!.blockedMs).toBeLessThanOrEqual(LEASE_MS / 3 + 1);
      expect(event!.blockedMs).toBeGreaterThan(LEASE_MS / 3 - CHECK_MS);
      expect(event!.leftMs).toBeGreaterThan(0);
      expect(event!.leftMs).toBeLessThanOrEqual(leftMs);
    }
  });

  it('is not reported if it lasts less than a quarter of each lease, whenever it begins', async () => {
    for (let atMs = 0; atMs < LEASE_MS; atMs += 97) {
      const { event } = await block(atMs, LEASE_MS / 4);
      expect({ atMs, event }).toEqual({ atMs, event: undefined });
    }
  });

  it('is reported once, with the lease that ends first', async () => {
    for (const [resource, leaseMs] of [
      ['slow', 30_000],
      ['fast', 3_000],
      ['faster', 2_900],
    ] as const) {
      await a.locks.acquire(resource, { leaseMs });
    }
    await world.clock.advance(900);
    world.clock.block(1_200);
    await world.clock.advance(1);
    expect(told()).toMatchObject([{ resource: 'faster', group: 'faster', mode: 'exclusive', leaseMs: 2_900 }]);
    expect(told()[0]!.leftMs).toBeCloseTo(2_900 * 0.99 - 2 - 2_100, -1);
    expect(eventsOf(a, 'lost')).toEqual([]);
  });

  it('is not reported if no lease is at risk', async () => {
    await a.locks.acquire('slow', { leaseMs: 60_000 });
    await a.locks.acquire('fixed', { leaseMs: 1_000, watchdog: false });
    await world.clock.advance(9_000);
    world.clock.block(9_000);
    await world.clock.advance(60_000);
    expect(told()).toEqual([]);
  });

  it('is noticed by the one timer of the watchdog, which ends with the leases', async () => {
    const leases = [
      await a.locks.acquire('slow', { leaseMs: 30_000 }),
      await a.locks.acquire('fast', { leaseMs: 600 }),
    ];
    await world.clock.advance(2_000);
    expect(world.clock.timers).toBe(1);
    await leases[1]!.release();
    await world.clock.advance(5_000);
    // One for each check, and one for each renewal that comes before one.
    expect(await wakeUps(30_000)).toBeLessThanOrEqual(12 + 3);
    await leases[0]!.release();
    await world.clock.advance(5_000);
    expect(world.clock.timers).toBe(0);
  });

  /** The number of timers that fire in this time. */
  async function wakeUps(ms: number): Promise<number> {
    let count = 0;
    world.clock.onStep = () => count++;
    await world.clock.advance(ms);
    world.clock.onStep = () => {};
    return count;
  }
});

const { leaseMs } = LOCK_DEFAULTS;
/** Moments within the time between two renewals, and right before the next one. */
const AGES = [0, 0.25, 0.5, 0.75, 0.99].map((part) => Math.round((part * leaseMs) / 3));

describe('with the default lengths', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b] = [world.instance('a'), world.instance('b')];
  });

  it('no call fails if a holder dies, and the first waiter has the lock within 1.1 leases', async () => {
    await a.locks.acquire('stock');
    a.store.all(lostOnTheWay);
    const call = track(b.locks.acquire('stock'));
    await world.clock.advance(1.1 * leaseMs);
    expect(call.state).toBe('fulfilled');
  });

  it.each(AGES)('no lease is lost to an event loop that is blocked for 8 s, %d ms after a renewal', async (ageMs) => {
    const lease = await a.locks.acquire('stock');
    await world.clock.advance(leaseMs / 3 + ageMs);
    world.clock.block(8_000);
    await settle();
    expect(lease.isHeld()).toBe(true);
    expect(await lease.verify()).toBe(true);
    await lease.release();
  });

  it.each<[string, LockClientOptions['defaults'], number]>([
    ['30 s', undefined, 30_000],
    ['what the module states', { leaseMs: 4_000 }, 4_000],
    ['no more than a store grants nothing after it has lost its locks', { restartQuarantineMs: 20_000 }, 20_000],
  ])('the run of a job has a lease of %s', async (_, defaults, expected) => {
    const fleet = new Fleet({ lock: {} });
    const member = fleet.member('anna', defaults && { defaults });
    const run = member.fire('09:00');
    await fleet.clock.advance(1_000);
    expect(run.state).toBe('fulfilled');
    expect(member.tickStore.claims.map(({ claim }) => claim.leaseMs)).toEqual([expected]);
  });

  it.each([
    [{}, 30_000],
    [{ leaseMs: 4_000 }, 4_000],
    [{ restartQuarantineMs: 20_000 }, 20_000],
  ])('a restarted node of a quorum votes when all leases have ended: %j', (options, expected) => {
    const quorum = { connections: ['redis://a', 'redis://b', 'redis://c'] };
    expect(resolveModuleOptions({ quorum, ...options }).defaults.restartQuarantineMs).toBe(expected);
  });
});
