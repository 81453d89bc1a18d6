import { jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { OnceCalls } from '../../../lib/features/once/core/once-calls.js';
import { RedisResultStore } from '../../../lib/features/once/redis/redis-result-store.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { eventually, rejection, untilAborted } from '../../support/expect/eventually.js';
import { type LockInstance, untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { ReplicaPair } from './replica-pair.js';

const DURABLY = { durability: { replicas: 1, timeoutMs: 50 } };
const UNCONFIRMED =
  /only 0 of 1 replicas have the changes after 50 ms \(durability\)\. Check that the replicas are connected to this primary/;

describe('with durability, on a primary and its replica', () => {
  let pair: ReplicaPair;
  const start = useInstances(() => pair.connection);

  beforeAll(async () => {
    pair = await ReplicaPair.start();
  });
  afterAll(() => pair[Symbol.asyncDispose]());
  beforeEach(async () => {
    await pair.catchUp();
    await pair.admin.flushall();
  });
  afterEach(() => pair.heal());

  const onReplica = async (resource: string) => (await pair.replicaAdmin.get(`lock:{${resource}}`)) ?? '';
  const expectNothingLeft = () =>
    eventually(async () => expect((await pair.admin.keys('*')).filter((key) => key !== 'lock:fence')).toEqual([]));

  it('the replica has each lock by the time it is granted', async () => {
    const { locks, instanceId } = await start(DURABLY);
    for (let i = 0; i < 50; i++) {
      const lease = await locks.acquire(`a${i}`);
      expect(await onReplica(`a${i}`)).toContain(instanceId);
      await lease.release();
    }
  });

  it.each([0, 400])('what no replica has is not granted (waitMs: %i), and nothing is left of it', async (waitMs) => {
    const { locks } = await start(DURABLY);
    pair.stall();
    const error = await rejection<LockUnavailableError>(locks.acquire('a', { waitMs }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(UNCONFIRMED);
    await expectNothingLeft();
  });

  it('what waits is granted as soon as the replica is back, within the same call', async () => {
    const { locks, instanceId } = await start(DURABLY);
    pair.stall();
    const lease = locks.acquire('a', { waitMs: 30_000 });
    await eventually(async () => expect(await pair.admin.exists('lock:{a}')).toBe(1));
    pair.heal();
    const { fencingToken } = await lease;
    expect(await onReplica('a')).toMatch(new RegExp(`^${instanceId}/.* ${fencingToken} 10000$`));
  });

  it('a renewal that no replica has does not lengthen the lease: it ends when the last that counts is over', async () => {
    const { locks, events } = await start({ ...DURABLY, defaults: { leaseMs: 5_000, attemptTimeoutMs: 5_000 } });
    const lease = await locks.acquire('a');
    pair.stall();
    await untilAborted(lease.signal);
    expect(lease.signal.reason).toMatchObject({ reason: 'notRenewed' });
    // Redis executed the renewal, and the replica did not.
    const failed = events.filter((event) => event.type === 'renewalFailed');
    expect(failed.length).toBeGreaterThan(1);
    for (const { error } of failed) expect(error.message).toMatch(UNCONFIRMED);
    expect(await pair.admin.exists('lock:{a}')).toBe(1);
    await eventually(async () => expect(await pair.replicaAdmin.pttl('lock:{a}')).toBeLessThan(1));
    await lease.release();
  });

  it('a lock that another process hands over is held when the replica has it, and not before', async () => {
    const [holder, waiter] = [await start(), await start(DURABLY)];
    const lease = await holder.locks.acquire('a');
    const next = waiter.locks.acquire('a', { waitMs: 30_000 });
    await untilQueued(holder, 'a', waiter);
    await pair.catchUp();
    pair.stall();
    let isGranted = false;
    void next.then(() => (isGranted = true));
    await lease.release();
    await eventually(async () => expect(await pair.admin.get('lock:{a}')).toContain(waiter.instanceId));
    await eventually(() => expect(waiter.store.connection.describeTrouble()).toBeDefined());
    expect(await onReplica('a')).toContain(holder.instanceId);
    // Longer than the message takes, and a try to have it confirmed.
    await rejection(waiter.locks.acquire('b', { waitMs: 0 }));
    expect(isGranted).toBe(false);
    pair.heal();
    await next;
    expect(await onReplica('a')).toContain(waiter.instanceId);
  });

  it('a release with others waiting behind it succeeds, also where the next lease cannot be confirmed', async () => {
    const { locks } = await start({ ...DURABLY, defaults: { strictOrder: true, attemptTimeoutMs: 10_000 } });
    const lease = await locks.acquire('a');
    const next = rejection<LockUnavailableError>(locks.acquire('a', { waitMs: 2_000 }));
    pair.stall();
    await lease.release();
    expect((await next).message).toMatch(UNCONFIRMED);
    await expectNothingLeft();
  });

  it('the commands of one lock keep their order, on whatever connections they leave', async () => {
    const durability = { replicas: 1, timeoutMs: 5_000 };
    const defaults = { backgroundRelease: true, attemptTimeoutMs: 10_000 };
    const { locks } = await start({ durability, defaults });
    for (let i = 0; i < 50; i++) {
      const lease = await locks.tryAcquire('a');
      expect(lease).not.toBeNull();
      await lease!.release();
    }
    // Without a watchdog, which would renew after a third of the shortest lease.
    const lease = await locks.acquire('a', { leaseMs: 20_000, watchdog: false });
    await Promise.all([lease.extend(20_000), lease.extend(3_000), lease.extend(10_000)]);
    const leftMs = await pair.admin.pttl('lock:{a}');
    expect(leftMs).toBeGreaterThan(3_000);
    expect(leftMs).toBeLessThanOrEqual(10_000);
    // Replicas may confirm the last one before the one before it: then the shorter of them is trusted.
    expect(lease.remainingMs()).toBeLessThanOrEqual(leftMs);
  });

  it('what was given up before it was sent is given back after it, though releases wait for nobody', async () => {
    const { locks } = await start({ ...DURABLY, defaults: { leaseMs: 60_000 } });
    await (await locks.acquire('first')).release();
    pair.stall();
    const blocked = rejection(locks.acquire('blocked', { waitMs: 300 }));
    await eventually(async () => expect(await pair.admin.exists('lock:{blocked}')).toBe(1));
    // It has to wait for a connection, and its release has not.
    const caller = new AbortController();
    const late = rejection(locks.acquire('late', { signal: caller.signal }));
    caller.abort();
    await Promise.all([blocked, late]);
    await expectNothingLeft();
  });

  it('scripts that Redis does not know any more are confirmed too', async () => {
    const { locks, instanceId } = await start(DURABLY);
    await pair.admin.script('FLUSH');
    await locks.acquire('a');
    expect(await onReplica('a')).toContain(instanceId);
    await pair.admin.script('FLUSH');
    pair.stall();
    expect((await rejection(locks.acquire('b', { waitMs: 0 }))).message).toMatch(UNCONFIRMED);
  });

  it('a tick is neither claimed nor recorded if no replica has it', async () => {
    const { store } = await start({ durability: { replicas: 1, timeoutMs: 500 } });
    const jobs = new RedisJobStore(store);
    const tick = { resource: 'cron:job', tick: '1' };
    const owner = { resource: tick.resource, id: `${store.clientId}/1`, mode: 'exclusive' as const };
    const claim = {
      owner,
      leaseMs: 10_000,
      claimTtlMs: 10_000,
      overlap: 'skip' as const,
      takeOver: 'nothing' as const,
    };
    pair.stall();
    expect(await rejection(jobs.claim(tick, claim))).toMatchObject({ failure: 'unknown' });
    pair.heal();
    expect(await jobs.claim(tick, claim)).toMatchObject({ status: 'granted' });
    pair.stall();
    for (let i = 0; i < 2; i++) {
      expect(
        await rejection(jobs.end(owner, { claim: { tick: tick.tick, to: 'finished', claimTtlMs: 10_000 } })),
      ).toBeInstanceOf(LockStoreError);
    }
    pair.heal();
    await jobs.end(owner, { claim: { tick: tick.tick, to: 'finished', claimTtlMs: 10_000 } });
    expect(await pair.replicaAdmin.get('lock:{cron:job}:tick:1')).toBe('finished');
  });

  describe('once', () => {
    const OPTIONS = { resultTtlMs: 60_000 };
    const onceOf = ({ locks, store }: LockInstance) =>
      new OnceCalls(locks.deps, locks.leases, locks.watches, new RedisResultStore(store));
    const replicated = () => pair.replicaAdmin.get('lock:{once:report}:result');

    it('returns a result that the replica has', async () => {
      const once = onceOf(await start({ durability: { replicas: 1, timeoutMs: 5_000 } }));
      expect(await once.run('report', OPTIONS, () => 'built')).toBe('built');
      expect(await replicated()).toBe('="built"');
    });

    it('does not run work whose lock no replica has', async () => {
      const once = onceOf(await start({ ...DURABLY, defaults: { unavailableMs: 400 } }));
      pair.stall();
      const work = jest.fn(() => 'built');
      const error = await rejection<LockUnavailableError>(once.run('report', OPTIONS, work));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(UNCONFIRMED);
      expect(work).not.toHaveBeenCalled();
      await expectNothingLeft();
    });

    it('returns a result that no replica has, and reports that', async () => {
      const here = await start(DURABLY);
      const stalled = async () => {
        pair.stall();
        return 'built';
      };
      expect(await onceOf(here).run('report', OPTIONS, stalled)).toBe('built');
      expect(await replicated()).toBeNull();
      const [failed] = here.events.filter((event) => event.type === 'releaseFailed');
      expect(failed?.error.message).toMatch(UNCONFIRMED);
    });
  });
});

describe('without a replica', () => {
  const redis = useRedis();
  const start = useInstances(() => redis().url);

  it('nothing is granted, and the error says how many there are', async () => {
    const { locks } = await start({
      durability: { replicas: 2, timeoutMs: 50 },
      connection: withoutUser(redis().port),
    });
    const error = await rejection(locks.acquire('a', { waitMs: 0 }));
    expect(error.message).toContain('only 0 of 2 replicas have the changes after 50 ms');
  });
});

describe('while the address leads to a replica', () => {
  const redis = useRedis();
  const start = useInstances(() => redis().url);
  const admin = useAdmin(() => redis().url);
  afterEach(() => admin().replicaof('NO', 'ONE'));

  it('each error reports the cause, and reconnects have a pause between them', async () => {
    const { locks } = await start({ ...DURABLY, connection: withoutUser(redis().port) });
    await admin().replicaof('127.0.0.1', 1);
    const connections = async () => Number(/total_connections_received:(\d+)/.exec(await admin().info('stats'))?.[1]);
    const before = await connections();
    const began = performance.now();
    let seconds = 0;
    for (let calls = 0; seconds < 3; calls++, seconds = (performance.now() - began) / 1_000) {
      const error = await rejection(locks.acquire(`a${calls}`, { waitMs: 500 }));
      expect(error.message).toContain('READONLY');
    }
    // The connection for commands, that for messages, and one of the pool: ten times a second, or forty without a pause.
    expect((await connections()) - before).toBeLessThan(3 * 20 * seconds);
  });

  it('each error says so, also while a new connection has not been answered yet', async () => {
    const { locks } = await start({ ...DURABLY, connection: withoutUser(redis().port) });
    await admin().replicaof('127.0.0.1', 1);
    const wait = jest.spyOn(Redis.prototype, 'wait').mockReturnValue(new Promise(() => {}));
    try {
      for (let calls = 0; calls < 3; calls++) {
        expect((await rejection(locks.acquire(`a${calls}`, { waitMs: 500 }))).message).toContain('READONLY');
      }
      expect(wait).toHaveBeenCalled();
    } finally {
      wait.mockRestore();
    }
  });
});

describe('when a replica that lags is made the primary', () => {
  const start = useInstances(() => ({}));
  const RESOURCES = Array.from({ length: 20 }, (_, i) => `a${i}`);

  /** Counts resources of the first process that the second one is granted as well. */
  async function countOverlaps(terms: Partial<typeof DURABLY>): Promise<{ overlaps: number; held: number }> {
    await using pair = await ReplicaPair.start();
    const { connection } = pair;
    const first = await start({ ...terms, defaults: { leaseMs: 60_000 }, connection });
    const early = await Promise.all(RESOURCES.slice(0, 5).map((name) => first.locks.acquire(name)));
    if (!terms.durability) await pair.catchUp();
    pair.stall();
    const late = await Promise.allSettled(RESOURCES.slice(5).map((name) => first.locks.acquire(name, { waitMs: 300 })));
    const leases = [...early, ...late.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))];
    await pair.failOver();
    const second = await start({ connection });
    await eventually(async () => (await second.locks.acquire('is there')).release());
    let overlaps = 0;
    for (const name of RESOURCES) {
      const lease = await second.locks.tryAcquire(name);
      if (lease && leases.some((each) => each.resource === name && each.isHeld())) overlaps++;
    }
    return { overlaps, held: leases.filter((lease) => lease.isHeld()).length };
  }

  it('no lock is held twice with durability', async () => {
    expect(await countOverlaps(DURABLY)).toEqual({ overlaps: 0, held: 5 });
  });

  it('and without it all those that the replica did not have', async () => {
    expect(await countOverlaps({})).toEqual({ overlaps: 15, held: 20 });
  });

  it('all connections reconnect if the old primary lives behind the same address, as a replica', async () => {
    await using pair = await ReplicaPair.start();
    const connection = { ...pair.connection, db: 3 };
    const { locks, store } = await start({ durability: { replicas: 1, timeoutMs: 500 }, connection });
    // At once, so that the pool has several connections.
    const leases = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => locks.acquire(name)));
    await pair.switchOver();
    await (await eventually(() => locks.acquire('free', { waitMs: 1_000 }), 10_000)).release();
    const inbox = store.keys.inbox(store.clientId);
    await eventually(async () => expect(await pair.admin.pubsub('NUMSUB', inbox)).toEqual([inbox, 1]));
    for (const lease of leases) {
      expect(await lease.verify()).toBe(true);
      await lease.release();
    }
  });
});

describe('when the primary restarts before a failover, and its replica copies that it is empty', () => {
  const start = useInstances(() => ({}));

  it.each([
    ['every lock is held twice, though the replica had it', {}, 'granted'],
    ['none is with restartQuarantineMs', { restartQuarantineMs: 600_000 }, 'restartQuarantineMs'],
  ] as const)('%s', async (_, terms, outcome) => {
    await using pair = await ReplicaPair.start();
    const { connection } = pair;
    const first = await start({ ...DURABLY, defaults: { leaseMs: 60_000 }, connection });
    const lease = await first.locks.acquire('a');
    await pair.restartPrimary();
    const second = await start({ ...DURABLY, ...terms, connection });
    const ask = (): Promise<string> =>
      second.locks.acquire('a', { waitMs: 2_000 }).then(
        () => 'granted',
        ({ message }: Error) => message,
      );
    await eventually(async () => expect(await ask()).toContain(outcome));
    // It asks for its next renewal in 20 s.
    expect(lease.isHeld()).toBe(true);
  });
});

/** The default user, whatever user others lock as. */
function withoutUser(port: number) {
  return { host: '127.0.0.1', port, password: undefined };
}
