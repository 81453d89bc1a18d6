import { type Clock, SystemClock, type Timer } from '../../../lib/kernel/util/clock.js';
import { eventually } from '../../support/expect/eventually.js';
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
});
