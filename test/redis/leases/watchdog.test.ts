import { type Clock, SystemClock, type Timer } from '../../../lib/core/util/clock.js';
import { eventually, untilAborted } from '../../support/expect/eventually.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

/** Counts the timers that are set and neither fired nor cancelled. */
class CountingClock extends SystemClock implements Clock {
  background = 0;
  mostBackground = 0;

  override setTimer(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer {
    if (!options?.background) return super.setTimer(callback, delayMs, options);
    let isSet = true;
    const clear = (): void => {
      if (isSet) this.background--;
      isSet = false;
    };
    this.mostBackground = Math.max(this.mostBackground, ++this.background);
    const fire = (): void => (clear(), callback());
    const timer = super.setTimer(fire, delayMs, options);
    return { cancel: () => (clear(), timer.cancel()) };
  }
}

describe('the watchdog', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  /** Resolves when Redis has executed this many renewals. */
  const renewals = (count: number) =>
    eventually(async () => expect((await commandCounts(admin())).pexpire ?? 0).toBeGreaterThanOrEqual(count));

  it('keeps a lock for many lease lengths, with the same token, and stops at the release', async () => {
    const { locks } = await start();
    const lease = await locks.acquire('a', { leaseMs: 900 });
    await resetCounts(admin());
    await renewals(12); // four lease lengths
    expect(lease.isHeld()).toBe(true);
    expect(await lease.verify()).toBe(true);
    expect(Number((await admin().get('lock:{a}'))!.split(' ')[1])).toBe(lease.fencingToken);
    await lease.release();
    expect(await admin().exists('lock:{a}')).toBe(0);
    await resetCounts(admin());
    const other = await locks.acquire('b', { leaseMs: 900 });
    await renewals(3);
    expect(await admin().exists('lock:{a}')).toBe(0);
    await other.release();
  });

  it('renews only while it is the owner: a lock taken over is never prolonged, and the loss is told', async () => {
    const { locks, events } = await start();
    const lease = await locks.acquire('a', { leaseMs: 1_500 });
    const aborted = untilAborted(lease.signal);
    await admin().set('lock:{a}', 'somebody/else 1', 'PX', 60_000);
    await aborted;
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'takenOver' });
    expect(lease.isHeld()).toBe(false);
    expect(events.filter(({ type }) => type === 'lost')).toHaveLength(1);
    expect(await admin().get('lock:{a}')).toBe('somebody/else 1');
    expect(await admin().pttl('lock:{a}')).toBeGreaterThan(1_000);
  });

  it('renews 1,000 leases with one command each a third of a lease, and one timer for all of them', async () => {
    const clock = new CountingClock();
    const { locks } = await start({ clock });
    const leaseMs = 3_000;
    const leases = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => locks.acquire(`r:${i}`, { leaseMs, attemptTimeoutMs: 10_000 })),
    );
    await resetCounts(admin());
    const from = performance.now();
    await renewals(2_000);
    const thirds = (performance.now() - from) / (leaseMs / 3);
    expect((await commandCounts(admin())).evalsha).toBeLessThanOrEqual(1_000 * (thirds + 2));
    expect(clock.mostBackground).toBe(1);
    expect(leases.every((lease) => lease.isHeld())).toBe(true);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it('does not spin with the shortest leases', async () => {
    const { locks } = await start();
    await resetCounts(admin());
    const from = performance.now();
    let leases = 0;
    // On a busy machine such a lease may be lost, rightly: then the next one is looked at.
    while (((await commandCounts(admin())).pexpire ?? 0) < 20) {
      const lease = await locks.acquire('a', { leaseMs: 50 });
      leases++;
      await eventually(async () => {
        expect(!lease.isHeld() || (await commandCounts(admin())).pexpire! >= 20).toBe(true);
      });
      await lease.release();
    }
    const { evalsha } = await commandCounts(admin());
    // A renewal a third of a lease, and for each lease an acquire, a release, and a few that were tried again.
    expect(evalsha).toBeLessThanOrEqual((performance.now() - from) / (50 / 3) + 8 * leases);
  });

  it('watchdog: false never renews, and ends as expired', async () => {
    const { locks } = await start();
    const lease = await locks.acquire('a', { leaseMs: 200, watchdog: false });
    await resetCounts(admin());
    await untilAborted(lease.signal);
    expect(lease.signal.reason).toMatchObject({ reason: 'expired' });
    expect((await commandCounts(admin())).evalsha).toBeUndefined();
    await eventually(async () => expect(await admin().exists('lock:{a}')).toBe(0));
  });

  it('maxHoldMs ends the lease, and the lock in Redis does not outlive it', async () => {
    const { locks } = await start();
    const lease = await locks.acquire('a', { leaseMs: 1_000, maxHoldMs: 1_500 });
    const from = performance.now();
    await untilAborted(lease.signal);
    expect(lease.signal.reason).toMatchObject({ reason: 'maxHold' });
    expect(performance.now() - from).toBeGreaterThan(1_000); // it was renewed
    await eventually(async () => expect(await admin().exists('lock:{a}')).toBe(0));
  });

  it('survives time-outs, errors and broken connections until the deadline', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const { locks, events } = await start({ connection: proxy.url });
    const lease = await locks.acquire('a', { leaseMs: 2_000 });
    // No connection when the renewal is due:
    proxy.blackHole('toServer');
    proxy.cut();
    await eventually(() => expect(events.at(-1)).toMatchObject({ type: 'renewalFailed' }));
    proxy.heal();
    await resetCounts(admin());
    await renewals(1);
    // Renewed, but the reply is lost:
    proxy.blackHole('toClient', 'commands');
    await resetCounts(admin());
    await renewals(1);
    proxy.cut();
    proxy.heal();
    await resetCounts(admin());
    await renewals(3);
    expect(lease.isHeld()).toBe(true);
    expect(lease.signal.aborted).toBe(false);
    await lease.release();
  });

  it('an error of Redis during the renewal is told, and renewing goes on', async () => {
    const { locks, events } = await start();
    const lease = await locks.acquire('a', { leaseMs: 900 });
    await admin().config('SET', 'min-replicas-to-write', '1'); // NOREPLICAS for every write
    await eventually(() => expect(events.at(-1)).toMatchObject({ type: 'renewalFailed' }));
    await admin().config('SET', 'min-replicas-to-write', '0');
    await resetCounts(admin());
    await renewals(4);
    expect(lease.isHeld()).toBe(true);
    await lease.release();
  });
});
