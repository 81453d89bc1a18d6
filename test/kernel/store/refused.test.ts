import { LockClient } from '../../../lib/kernel/lock-client.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { answered, failing, repliedWhen, type Verb } from '../../support/world/scripted-store.js';
import { QuorumWorld } from '../../support/world/quorum-world.js';
import { Fleet, type Member } from '../../support/world/singleton-fleet.js';
import { gate, track, type Tracked } from '../../support/expect/tracked.js';

const LEASE_MS = 30_000;
const WAITS = { leaseMs: LEASE_MS, waitMs: Infinity };
const refused = failing('refused', 'NOPERM');
/** No longer than this after the mend, whatever was refused. */
const SOON_MS = 2_000;

describe('a command that Redis refuses for a while', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let c: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b, c] = ['a', 'b', 'c'].map((name) => world.instance(name)) as [Instance, Instance, Instance];
  });

  const acquire = ({ locks }: Instance, options: LockOptions = {}): Promise<Lease> =>
    locks.acquire('stock', { ...WAITS, ...options });
  /** The user of this instance may do nothing any more. */
  const refuse = ({ store }: Instance): void => store.all(refused);
  const mend = ({ store }: Instance): void => store.all(answered);
  const sentAt = ({ store }: Instance, verb: Verb, since: number) =>
    store.sent(verb).map((command) => command.sentAt - since);

  async function expectSoon(granted: Tracked<Lease>): Promise<void> {
    expect(granted.state).toBe('pending');
    await world.clock.advance(SOON_MS);
    expect(granted.state).toBe('fulfilled');
    await granted.value.release();
  }

  async function expectNothingLeft(): Promise<void> {
    await world.clock.advance(2 * LEASE_MS);
    expect([world.server.isEmpty, world.clock.timers]).toEqual([true, 0]);
    expect([a, b, c].map(({ locks }) => locks.stats().orphanReleases)).toEqual([0, 0, 0]);
  }

  describe.each<[string, (granted: () => Tracked<Lease>) => Promise<Tracked<Lease>>]>([
    [
      'a release',
      async (granted) => {
        const lease = await acquire(a);
        const next = granted();
        refuse(a);
        await expect(lease.release()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
        return next;
      },
    ],
    [
      'a release whose minimum has not ended',
      async (granted) => {
        const lease = await acquire(a, { minHoldMs: 500 });
        const next = granted();
        refuse(a);
        await expect(lease.release()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
        return next;
      },
    ],
    [
      'a release for the next call of the same process',
      async (granted) => {
        const lease = await acquire(a, { strictOrder: true });
        const own = track(acquire(a, { strictOrder: true }));
        const next = granted();
        refuse(a);
        await expect(lease.release()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
        expect(own.state).toBe('rejected');
        return next;
      },
    ],
  ])('%s', (_, begin) => {
    it.each([0, 100, 1_000, 5_000])(
      'frees the lock soon after Redis accepts it again, %i ms later',
      async (brokenMs) => {
        const granted = await begin(() => track(acquire(b)));
        await world.clock.advance(brokenMs);
        mend(a);
        await expectSoon(granted);
        await expectNothingLeft();
      },
    );
  });

  describe('a waiter that has ended', () => {
    /** It waits first, and its withdrawal is refused. */
    async function ghost(end: 'aborted' | 'out of time' | 'refused') {
      const holder = await acquire(c);
      const controller = new AbortController();
      const isOutOfTime = end === 'out of time';
      const ghost = track(acquire(a, { signal: controller.signal, ...(isOutOfTime && { waitMs: 100 }) }));
      await settle();
      const next = track(acquire(b));
      await settle();
      refuse(a);
      if (end === 'aborted') controller.abort();
      else if (end === 'refused') a.store.reconnect();
      await world.clock.advance(end === 'refused' ? LEASE_MS / 2 : 100);
      expect(ghost.state).toBe('rejected');
      return { holder, next };
    }

    it.each(['aborted', 'out of time', 'refused'] as const)(
      '%s, and is granted, has its release answered',
      async (end) => {
        const { holder, next } = await ghost(end);
        await holder.release();
        await settle();
        expect(a.store.grants).toHaveLength(1);
        mend(a);
        await expectSoon(next);
        await expectNothingLeft();
      },
    );

    it('leaves the queue before it is granted', async () => {
      const { holder, next } = await ghost('aborted');
      mend(a);
      await world.clock.advance(SOON_MS);
      await holder.release();
      await settle();
      expect([a.store.grants.length, next.state]).toEqual([0, 'fulfilled']);
      await next.value.release();
      await expectNothingLeft();
    });
  });

  it('a release of permits is effective soon after, and the same call again releases none twice', async () => {
    const semaphore = ({ locks }: Instance) => locks.semaphore('exports', { permits: 3 });
    const lease = await semaphore(a).acquire({ ...WAITS, count: 3 });
    const waiting = track(semaphore(b).acquire({ ...WAITS, count: 2 }));
    refuse(a);
    await expect(lease.releasePermits(2)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await expect(lease.releasePermits(2)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await world.clock.advance(1_000);
    mend(a);
    await world.clock.advance(SOON_MS);
    expect(waiting.state).toBe('fulfilled');
    await lease.releasePermits(2);
    expect(lease.permits).toBe(1);
    const sent = a.store.sent('lowerPermits').length;
    await world.clock.advance(LEASE_MS);
    expect(a.store.sent('lowerPermits')).toHaveLength(sent);
    await lease.release();
    await waiting.value.release();
    await expectNothingLeft();
  });

  it('a release of permits is repeated no longer than the lease', async () => {
    const lease = await a.locks.semaphore('exports', { permits: 3 }).acquire({ ...WAITS, count: 3 });
    a.store.fates.lowerPermits = refused;
    await expect(lease.releasePermits(2)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await lease.release();
    const sent = a.store.sent('lowerPermits').length;
    await expectNothingLeft();
    expect(a.store.sent('lowerPermits')).toHaveLength(sent);
  });

  it('a downgrade admits readers soon after, even if the writer has left it to local readers', async () => {
    const writer = await acquire(a, { mode: 'write' });
    const own = track(acquire(a, { mode: 'read' }));
    const other = track(acquire(b, { mode: 'read' }));
    await settle();
    refuse(a);
    await expect(writer.downgrade()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(own.state).toBe('fulfilled');
    await writer.release();
    await world.clock.advance(1_000);
    mend(a);
    await world.clock.advance(SOON_MS);
    expect(other.state).toBe('fulfilled');
    await own.value.release();
    await other.value.release();
    await expectNothingLeft();
  });

  describe('is repeated', () => {
    it('at once, then after 200 ms, and twice as long each time, up to 2 s, until the lease has ended', async () => {
      const lease = await acquire(a, { leaseMs: 10_000 });
      const releasedAt = world.clock.now();
      refuse(a);
      await lease.release().catch(() => {});
      await world.clock.advance(LEASE_MS);
      expect(sentAt(a, 'release', releasedAt)).toEqual([0, 0, 200, 600, 1_400, 3_000, 5_000, 7_000, 9_000]);
      expect(a.locks.stats().orphanReleases).toBe(0);
    });

    it('at once when the connection is new', async () => {
      const lease = await acquire(a);
      refuse(a);
      await lease.release().catch(() => {});
      await world.clock.advance(1_500);
      mend(a);
      a.store.reconnect();
      await settle();
      expect(world.server.isEmpty).toBe(true);
      await expectNothingLeft();
    });

    it('one at a time, and all of them at once when one is answered', async () => {
      const names = ['x', 'y', 'z'];
      const leases = await Promise.all(names.map((name) => a.locks.acquire(name, WAITS)));
      refuse(a);
      for (const lease of leases) await lease.release().catch(() => {});
      const answer = gate();
      a.store.fates.release = async (execute) => {
        await answer.opened;
        return refused(execute);
      };
      const before = a.store.sent('release').length;
      await world.clock.advance(500);
      expect(a.store.sent('release').length - before).toBe(1);
      answer.open();
      await settle();
      expect(a.store.sent('release').length - before).toBe(3);
      const last = gate();
      a.store.fates.release = repliedWhen(last.opened);
      await world.clock.advance(400);
      expect(a.store.sent('release').length - before).toBe(4);
      last.open();
      await settle();
      expect(world.server.isEmpty).toBe(true);
      await expectNothingLeft();
    });

    it('but does not delay a shutdown', async () => {
      const lease = await acquire(a);
      refuse(a);
      await lease.release().catch(() => {});
      await world.clock.advance(1_000);
      const sent = a.store.sent('release').length;
      const shutdown = track(a.locks.shutdown(10_000));
      await settle();
      expect(shutdown.state).toBe('fulfilled');
      expect(a.store.sent('release').length - sent).toBe(1);
      await world.clock.advance(LEASE_MS);
      expect(a.store.sent('release').length - sent).toBe(1);
    });

    it('once more by a shutdown, which may find that it is accepted again', async () => {
      const lease = await acquire(a);
      refuse(a);
      await lease.release().catch(() => {});
      await world.clock.advance(1_500);
      mend(a);
      const shutdown = track(a.locks.shutdown(10_000));
      await settle();
      expect([shutdown.state, world.server.isEmpty]).toEqual(['fulfilled', true]);
    });
  });
});

describe('the end of a run that Redis refuses for a while', () => {
  let fleet: Fleet;
  let anna: Member;
  let ben: Member;

  beforeEach(() => {
    fleet = new Fleet({ onCrash: 'retry' });
    [anna, ben] = fleet.members('anna', 'ben') as [Member, Member];
  });

  it('is reported before the lock is released, so that the tick does not run twice', async () => {
    anna.fire('09:00');
    ben.fire('09:00');
    await fleet.clock.advance(1);
    anna.tickStore.fates.finish = refused;
    await fleet.clock.advance(1_000);
    anna.tickStore.fates.finish = answered;
    await fleet.clock.advance(SOON_MS);
    expect([fleet.holder, anna.tickStore.finishes.length]).toEqual([undefined, 4]);
    await fleet.clock.advance(60_000);
    expect(fleet.runs).toHaveLength(1);
  });

  it('does not retry its report for longer than a shutdown waits', async () => {
    const run = anna.fire('09:00');
    await fleet.clock.advance(1);
    anna.tickStore.fates.finish = refused;
    await fleet.clock.advance(1_000);
    const shutdown = track(anna.instance.locks.shutdown(2_000));
    await fleet.clock.advance(2_500);
    expect([run.state, shutdown.state]).toEqual(['fulfilled', 'fulfilled']);
  });

  it('is reported by the release of the lock, with its outcome', async () => {
    const { clock, server } = fleet.world;
    const store = new MemoryLockStore({ instanceId: 'anna', server });
    const locks = new LockClient({ store, clock });
    const jobs = new RedisJobStore(store);
    const end = jobs.end.bind(jobs);
    let isRefused = false;
    jobs.end = (...args) => (isRefused ? Promise.reject(new LockStoreError('refused', 'NOPERM')) : end(...args));
    const options = { ...fleet.job, tick: '09:00', onCrash: 'skip' as const };
    const run = track(locks.jobs.runs(jobs).run(options, () => void (isRefused = true)));
    await clock.advance(1_000);
    expect([run.state, fleet.holder]).toEqual(['fulfilled', 'anna']);
    isRefused = false;
    await clock.advance(SOON_MS);
    expect(fleet.holder).toBeUndefined();
    expect(await jobs.look(['cron:report'], 1)).toMatchObject([{ runs: [{ tick: '09:00', outcome: 'ok' }] }]);
  });
});

describe('a quorum whose majority refuses for a while', () => {
  let world: QuorumWorld;
  const options = { leaseMs: LEASE_MS, waitMs: 60_000 };
  const refuse = (refusal: string | undefined): void => {
    for (const distance of world.distances.slice(1)) distance.refusal = refusal!;
  };

  async function expectSoon(): Promise<void> {
    const next = track(world.client().locks.acquire('stock', options));
    await world.clock.advance(SOON_MS);
    expect(next.state).toBe('fulfilled');
    await world.until(next.value.release());
    await world.clock.advance(2 * LEASE_MS);
    expect([world.isEmpty, world.clock.timers]).toEqual([true, 0]);
  }

  beforeEach(() => void (world = new QuorumWorld({ nodes: 3 })));

  it('frees the lock soon after it accepts again: a release', async () => {
    const lease = await world.until(world.client().locks.acquire('stock', options));
    refuse('NOPERM');
    const released = track(lease.release());
    await world.clock.advance(1_500);
    expect(released.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    refuse(undefined);
    await expectSoon();
  });

  it('frees the lock soon after it accepts again: a withdrawal, and the release of another process that grants it', async () => {
    const lease = await world.until(world.client().locks.acquire('stock', options));
    const controller = new AbortController();
    const leaving = track(world.client().locks.acquire('stock', { ...options, signal: controller.signal }));
    await world.clock.advance(50);
    refuse('NOPERM');
    controller.abort();
    await world.clock.advance(1_500);
    expect(leaving.error).toMatchObject({ code: 'LOCK_ABORTED' });
    refuse(undefined);
    await world.until(lease.release());
    await expectSoon();
  });
});
