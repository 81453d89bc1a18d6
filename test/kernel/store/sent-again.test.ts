import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { gate, track, type Tracked } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import {
  brokenAfter,
  executedWhen,
  failing,
  type Fate,
  lostOnTheWay,
  repliedWhen,
  type Verb,
} from '../../support/world/scripted-store.js';

const LEASE_MS = 30_000;
const TIMEOUT_MS = 1_000;
/** As in a fail-over: the server that is asked is a replica already. */
const demoted = failing('notExecuted', 'READONLY this server is a replica');

describe('a command that Redis has certainly not executed', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  const rejection = ({ error }: Tracked<unknown>) => error as Error & { lastAttempt: string };

  type Question = [verb: Verb, prepare: () => Promise<() => Promise<unknown>>];
  const ofLease =
    (use: (lease: Lease) => Promise<unknown>, options: LockOptions = {}): Question[1] =>
    async () => {
      const lease = await a.locks.acquire('stock', options);
      return () => use(lease);
    };

  const questions: Question[] = [
    ['release', ofLease((lease) => lease.release())],
    ['verify', ofLease((lease) => lease.verify())],
    ['renew', ofLease((lease) => lease.extend())],
    ['downgrade', ofLease((lease) => lease.downgrade(), { mode: 'write' })],
    [
      'lowerPermits',
      async () => {
        const lease = await a.locks.semaphore('exports', { permits: 3 }).acquire({ count: 3 });
        return () => lease.releasePermits(1);
      },
    ],
    ['inspect', async () => () => a.locks.inspect('stock')],
    ['list', async () => () => a.locks.operators.list()],
    ['forceRelease', async () => () => a.locks.operators.forceRelease('stock', { fencingToken: 1 })],
    ['resize', async () => () => a.locks.semaphore('exports', { permits: 3 }).resize(4)],
  ];

  describe.each(questions)('%s', (verb, prepare) => {
    let ask: () => Promise<unknown>;
    beforeEach(async () => void (ask = await prepare()));

    it('is repeated, with pauses, until it is executed, without a report', async () => {
      a.store.next(verb, demoted, demoted, demoted);
      const asking = track(ask());
      await world.clock.advance(139);
      expect(asking.state).toBe('pending');
      await world.clock.advance(1);
      expect(asking.state).toBe('fulfilled');
      const [first, ...others] = a.store.sent(verb).map(({ sentAt }) => sentAt);
      expect(others.map((sentAt) => sentAt - first!)).toEqual([20, 60, 140]);
      expect(eventsOf(a, 'releaseFailed')).toEqual([]);
    });

    it('is a LockUnavailableError with the reason after attemptTimeoutMs, and not earlier', async () => {
      a.store.fates[verb] = demoted;
      const asking = track(ask());
      await world.clock.advance(TIMEOUT_MS - 1);
      expect(asking.state).toBe('pending');
      await world.clock.advance(1);
      expect(rejection(asking)).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'failed' });
      expect(rejection(asking).message).toContain('READONLY');
      expect(a.store.sent(verb).length).toBeLessThan(10 + (verb === 'release' ? 1 : 0));
    });

    it.each<[string, Fate, string]>([
      ['it may have been executed', brokenAfter, 'broke before the reply'],
      ['it is refused', failing('refused', 'NOPERM'), 'NOPERM'],
    ])('is reported at once if after that %s', async (_why, fate, message) => {
      a.store.next(verb, demoted, fate);
      const asking = track(ask());
      await world.clock.advance(20);
      expect(rejection(asking).message).toContain(message);
    });

    it('times out if the last attempt gets no reply', async () => {
      a.store.next(verb, demoted, lostOnTheWay);
      const asking = track(ask());
      await world.clock.advance(TIMEOUT_MS);
      expect(rejection(asking)).toMatchObject({ lastAttempt: 'timeout' });
    });

    it('is not repeated once its caller has given up', async () => {
      const late = gate();
      a.store.next(verb, () => late.opened.then(() => demoted(() => Promise.resolve(undefined as never))));
      const asking = track(ask());
      await world.clock.advance(TIMEOUT_MS);
      expect(asking.state).toBe('rejected');
      const sent = a.store.sent(verb).length;
      late.open();
      await world.clock.advance(500);
      expect(a.store.sent(verb)).toHaveLength(sent);
    });
  });

  it.each(['verify', 'renew'] as const)('%s is not repeated for a lease that has ended', async (verb) => {
    const lease = await a.locks.acquire('stock', { leaseMs: 100, watchdog: false });
    a.store.fates[verb] = demoted;
    const asking = track<unknown>(verb === 'verify' ? lease.verify() : lease.extend());
    await world.clock.advance(100);
    const sent = a.store.sent(verb).length;
    await world.clock.advance(TIMEOUT_MS);
    expect(lease.signal.reason).toMatchObject({ reason: 'expired' });
    expect(asking.state).toBe('rejected');
    expect(a.store.sent(verb)).toHaveLength(sent);
  });

  describe('a release in the background', () => {
    it('is repeated like any other', async () => {
      const lease = await a.locks.acquire('stock', { backgroundRelease: true });
      a.store.next('release', demoted);
      await lease.release();
      await world.clock.advance(20);
      expect(world.server.isEmpty).toBe(true);
      expect(eventsOf(a, 'released')).toHaveLength(1);
      expect(eventsOf(a, 'releaseFailed')).toEqual([]);
    });
  });

  describe('a rotation: the release is sent alone, and the next call asks by itself', () => {
    const terms = { strictOrder: true, leaseMs: LEASE_MS };
    const acquire = (instance: Instance, waitMs = 10_000) => instance.locks.acquire('stock', { ...terms, waitMs });

    it('both succeed, and nothing is lost', async () => {
      const first = await acquire(a);
      const waiting = track(acquire(a));
      a.store.next('rotate', demoted);
      a.store.next('release', demoted);
      a.store.next('acquire', demoted);
      const releasing = track(first.release());
      await world.clock.advance(100);
      expect([releasing.state, waiting.state]).toEqual(['fulfilled', 'fulfilled']);
      expect(a.events.map(({ type }) => type)).not.toContain('lost');
      expect(eventsOf(a, 'released')).toHaveLength(1);
      expect(waiting.value.fencingToken).toBeGreaterThan(first.fencingToken);
      await waiting.value.release();
      expect(world.server.isEmpty).toBe(true);
    });

    it('a next call that gives up before the retry takes nothing with it', async () => {
      const first = await acquire(a);
      const waiting = track(acquire(a, 10));
      a.store.next('rotate', demoted);
      a.store.next('release', demoted);
      const releasing = track(first.release());
      await world.clock.advance(60);
      expect(waiting.state).toBe('rejected');
      expect(releasing.state).toBe('fulfilled');
      expect(world.server.isEmpty).toBe(true);
    });
  });
});

/** Redis may execute a command after others that were sent later: it did not know the script, and it is sent once more. */
describe('commands that are executed late', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('a late attempt does not cut a lease that was extended since', async () => {
    const arrival = gate();
    a.store.next('acquire', executedWhen(arrival.opened));
    const acquiring = track(a.locks.acquire('stock', { leaseMs: 1_000, watchdog: false, attemptTimeoutMs: 100 }));
    await world.clock.advance(200); // the second attempt is granted
    const lease = acquiring.value;
    await lease.extend(60_000);
    arrival.open(); // the first one is executed: PEXPIRE 1000
    await world.clock.advance(2_000);
    const other = track(b.locks.acquire('stock', { waitMs: 10 }));
    await world.clock.advance(10);
    expect(lease.isHeld()).toBe(true);
    expect(other.state).toBe('rejected');
  });

  it('a late heartbeat does not cut it either', async () => {
    const holder = await b.locks.acquire('stock');
    const acquiring = track(a.locks.acquire('stock', { leaseMs: 3_000 }));
    await settle();
    const arrival = gate();
    a.store.next('acquire', executedWhen(arrival.opened));
    await world.clock.advance(1_300); // a heartbeat, on a connection that stalls
    await holder.release();
    await settle();
    await acquiring.value.extend(60_000); // renewed next in 20 s
    arrival.open();
    await world.clock.advance(4_000);
    const other = track(b.locks.acquire('stock', { waitMs: 10 }));
    await world.clock.advance(10);
    expect(acquiring.value.isHeld()).toBe(true);
    expect(other.state).toBe('rejected');
  });

  it('a late renewal does not cut it either', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: 3_000 });
    const arrival = gate();
    a.store.next('renew', executedWhen(arrival.opened));
    await world.clock.advance(1_000); // the watchdog renews; Redis did not know the script, and it is sent anew
    await lease.extend(60_000); // confirmed; the renewal is forgotten: "executed before it, or never"
    arrival.open();
    await world.clock.advance(4_000);
    const other = track(b.locks.acquire('stock', { waitMs: 10 }));
    await world.clock.advance(10);
    expect(lease.isHeld()).toBe(true);
    expect(other.state).toBe('rejected');
  });

  it('a late grant that arrives together with the end of its withdrawal is returned', async () => {
    // In order on one connection: acquire (NOSCRIPT), release, EVAL acquire; the last two replies come in one packet.
    const late = gate();
    const packet = gate();
    a.store.next('acquire', async (execute) => {
      await late.opened;
      const reply = await execute();
      await packet.opened;
      return reply;
    });
    a.store.next('release', repliedWhen(packet.opened));
    const controller = new AbortController();
    track(a.locks.acquire('stock', { signal: controller.signal }));
    await settle();
    controller.abort(); // the release is executed, and finds nothing
    await settle();
    late.open(); // the acquire is executed: granted
    await settle();
    packet.open();
    await world.clock.advance(5_000);
    expect(a.store.sent('release')).toHaveLength(2);
    expect(world.server.isEmpty).toBe(true);
  });

  it('an attempt of a poller that is executed after the release is returned', async () => {
    const late = gate();
    a.store.next('acquire', executedWhen(late.opened));
    const retry = { next: () => 10 };
    const polling = track(a.locks.acquire('stock', { retry, attemptTimeoutMs: 100 }));
    await world.clock.advance(150); // the second attempt is granted
    await polling.value.release();
    late.open(); // and now the first one
    await world.clock.advance(5_000);
    expect(world.server.isEmpty).toBe(true);
  });
});

describe('a release in the background', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('does not wait for the reply of Redis, which is reported to the observers', async () => {
    const answer = gate();
    const lease = await a.locks.acquire('stock', { backgroundRelease: true });
    a.store.next('release', repliedWhen(answer.opened));
    await lease.release();
    expect(lease.isHeld()).toBe(false);
    expect(eventsOf(a, 'released')).toEqual([]);
    answer.open();
    await settle();
    expect(eventsOf(a, 'released')).toHaveLength(1);
  });

  it('is the end of every lock with the module option', async () => {
    const c = world.instance('c', { defaults: { backgroundRelease: true } });
    c.store.fates.release = lostOnTheWay;
    expect(await c.locks.using('stock', undefined, () => 'done')).toBe('done');
  });

  it('reports a failure to the observers, retries it, and throws nowhere', async () => {
    const lease = await a.locks.acquire('stock', { backgroundRelease: true });
    a.store.next('release', failing('unknown'));
    await lease.release();
    await world.clock.advance(1_000);
    expect(eventsOf(a, 'releaseFailed')).toMatchObject([{ resource: 'stock', error: { code: 'LOCK_UNAVAILABLE' } }]);
    expect(a.store.sent('release')).toHaveLength(2);
    expect(await b.locks.tryAcquire('stock')).not.toBeNull();
  });
});

const COHORT_MS = 10;

describe('the order of tokens if Redis has lost the lock of a process that passes it on in memory', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const acquire = ({ locks }: Instance, options: LockOptions = {}) => locks.acquire('stock', options);
  const forceRelease = async ({ locks }: Instance) => {
    const { holders } = await locks.inspect('stock');
    return locks.operators.forceRelease('stock', { fencingToken: holders[0]!.fencingToken });
  };

  /** Everything is gone, and it can be known by the connection, which is new. */
  const restart = ({ store }: Instance) => {
    for (const resource of world.server.held()) world.server.lose(resource);
    store.reconnect();
  };

  it('is wrong for no longer than 10 ms after the process took the lock', async () => {
    const first = await acquire(a);
    const waiting = [1, 2].map(() => track(acquire(a)));
    await settle();
    await forceRelease(b);
    const other = await acquire(b);
    await world.clock.advance(COHORT_MS - 1);
    await first.release();
    await settle();
    // Granted after the other one, and smaller: what checks tokens refuses it, which is right.
    expect(waiting[0]!.value.fencingToken).toBe(first.fencingToken + 1);
    expect(waiting[0]!.value.fencingToken).toBeLessThan(other.fencingToken);
    await world.clock.advance(1);
    await waiting[0]!.value.release();
    await settle();
    expect(waiting[1]!.state).toBe('pending');
    await other.release();
    await settle();
    expect(waiting[1]!.value.fencingToken).toBeGreaterThan(other.fencingToken);
  });

  it.each([
    ['this process itself forces the release', async () => void (await forceRelease(a))],
    ['the connection is new, as after a restart without data', async () => restart(a)],
  ])('is right at once if %s', async (_, happen) => {
    const first = await acquire(a);
    const waiting = track(acquire(a));
    await settle();
    await happen();
    const other = await acquire(b);
    await first.release().catch(() => {});
    await settle();
    expect(waiting.state).toBe('pending');
    await other.release();
    await world.clock.advance(1_300);
    expect(waiting.value.fencingToken).toBeGreaterThan(other.fencingToken);
  });

  it('is right while the reply to its own forced release is on its way', async () => {
    const first = await acquire(a);
    const waiting = track(acquire(a));
    await settle();
    const reply = gate();
    a.store.next('forceRelease', async (execute) => {
      const done = await execute();
      await reply.opened;
      return done;
    });
    const forced = track(forceRelease(a));
    await settle();
    const other = await acquire(b);
    await first.release();
    await settle();
    expect(waiting.state).toBe('pending');
    reply.open();
    await settle();
    expect(forced.value).toBe(true);
    await other.release();
    await settle();
    expect(waiting.value.fencingToken).toBeGreaterThan(other.fencingToken);
  });

  it('is right for readers that would join one whose lock is in doubt', async () => {
    await acquire(a, { mode: 'read' });
    restart(a);
    const writer = await acquire(b, { mode: 'write' });
    const reader = track(acquire(a, { mode: 'read' }));
    await settle();
    expect(reader.state).toBe('pending');
    await writer.release();
    await world.clock.advance(1_300);
    expect(reader.value.fencingToken).toBeGreaterThan(writer.fencingToken);
  });

  it('costs one request to Redis if nothing was lost', async () => {
    const first = await acquire(a);
    const waiting = [1, 2].map(() => track(acquire(a)));
    await settle();
    a.store.reconnect();
    await first.release();
    await settle();
    await waiting[0]!.value.release();
    await settle();
    expect(waiting[1]!.value.fencingToken).toBe(waiting[0]!.value.fencingToken + 1);
    expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'rotate']);
  });
});
