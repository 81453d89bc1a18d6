import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { brokenAfter, failing, type Fate, lostOnTheWay, type Verb } from '../../support/world/scripted-store.js';
import { gate, track, type Tracked } from '../../support/expect/tracked.js';

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
