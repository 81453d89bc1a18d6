import fc from 'fast-check';
import type { CampaignOptions, Term } from '../../../../lib/features/leader/core/leadership.js';
import { InvalidLockOptionsError } from '../../../../lib/kernel/api/errors.js';
import { LeaseLostError } from '../../../../lib/kernel/api/lease-errors.js';
import { gate, track } from '../../../support/expect/tracked.js';
import {
  type LeadershipIncident,
  type LeadershipPlan,
  LeadershipSimulation,
} from '../../../support/simulation/leadership-simulation.js';
import { PATIENCE_MS, runs } from '../../../support/simulation/runs.js';
import { settle } from '../../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../../support/world/lock-world.js';
import { failing, lostOnTheWay, repliedWhen } from '../../../support/world/scripted-store.js';

const LEASE_MS = 3_000;

describe('a campaign', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  const stand = (instance: Instance, options: CampaignOptions = {}) =>
    instance.locks.campaign('mailer', { leaseMs: LEASE_MS, ...options });

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('elects one of two candidates, and the other one when the leader resigns: at once, with a larger token', async () => {
    const [leader, candidate] = [stand(a), stand(b)];
    expect(leader.isLeader()).toBe(false); // nobody waits for Redis in here
    await settle();
    expect([leader.isLeader(), candidate.isLeader()]).toEqual([true, false]);
    const first = leader.fencingToken!;
    expect(candidate.fencingToken).toBeUndefined();
    expect((await b.locks.inspect('leader:mailer')).holders).toMatchObject([{ instanceId: 'a', fencingToken: first }]);
    await leader.resign();
    await settle();
    expect([leader.isLeader(), candidate.isLeader()]).toEqual([false, true]);
    expect(candidate.fencingToken).toBeGreaterThan(first);
    expect(eventsOf(a, 'elected')).toMatchObject([
      { type: 'elected', leadership: 'mailer', resource: 'leader:mailer', fencingToken: first },
    ]);
    expect(eventsOf(a, 'demoted')).toMatchObject([{ leadership: 'mailer', fencingToken: first, reason: 'resigned' }]);
  });

  it('elects a leader while an ordinary lock has the same name, which may come from a URL', async () => {
    const lease = await b.locks.acquire('mailer');
    const leader = stand(a);
    await settle();
    expect(leader.isLeader()).toBe(true);
    expect(lease.isHeld()).toBe(true);
    expect(await a.locks.tryAcquire('mailer')).toBeNull();
  });

  it('has an aborted signal as long as it is not elected', async () => {
    stand(a);
    await settle();
    const candidate = stand(b);
    expect(candidate.signal.reason).toMatchObject({ code: 'NOT_LEADER', reason: 'notElected', leadership: 'mailer' });
    expect(candidate.signal).toBe(candidate.signal);
  });

  describe('whose leader loses its lease', () => {
    it('is demoted with the loss as its reason, before the next one is elected, and runs again', async () => {
      const story: unknown[] = [];
      const leader = stand(a, {
        onElected: ({ fencingToken }) => void story.push(fencingToken),
        onDemoted: (reason, { fencingToken }) => void story.push(reason, fencingToken),
      });
      const candidate = stand(b);
      await settle();
      const { signal, fencingToken } = leader;
      a.store.all(lostOnTheWay);
      world.clock.onStep = () => expect(leader.isLeader() && candidate.isLeader()).toBe(false);
      await world.clock.advance(2 * LEASE_MS);
      expect(candidate.isLeader()).toBe(true);
      expect(signal.reason).toBeInstanceOf(LeaseLostError);
      expect(story).toEqual([fencingToken, signal.reason, fencingToken]);
      a.store.all((execute) => execute());
      await world.clock.advance(LEASE_MS);
      await candidate.resign();
      await world.clock.advance(LEASE_MS);
      expect(leader.isLeader()).toBe(true);
      expect(leader.fencingToken).toBeGreaterThan(fencingToken!);
      expect(eventsOf(a, 'demoted')).toMatchObject([{ reason: 'notRenewed' }]);
    });

    it('does not wait for work that continues', async () => {
      const leader = stand(a);
      await settle();
      track(leader.run(() => new Promise(() => {})));
      world.clock.block(LEASE_MS);
      await world.clock.advance(LEASE_MS);
      expect(leader.isLeader()).toBe(true);
    });

    it('is not elected again before its callbacks have ended: callbacks of two terms never overlap', async () => {
      const cleanedUp = gate();
      const elected: Term[] = [];
      const leader = stand(a, { onElected: (term) => void elected.push(term), onDemoted: () => cleanedUp.opened });
      await settle();
      world.clock.block(LEASE_MS);
      await world.clock.advance(10 * LEASE_MS);
      expect(leader.isLeader()).toBe(false);
      expect(a.store.sent('acquire')).toHaveLength(1); // and it keeps nobody else from it
      cleanedUp.open();
      await settle();
      expect(elected).toHaveLength(2);
      expect(leader.isLeader()).toBe(true);
    });

    it('while it steps down: another instance may lead, so it waits no longer', async () => {
      const leader = stand(a);
      await settle();
      track(leader.run(() => new Promise(() => {})));
      const resigned = track(leader.resign());
      await settle();
      expect(resigned.state).toBe('pending');
      world.clock.block(LEASE_MS);
      await world.clock.advance(1_000);
      expect(resigned.state).toBe('fulfilled');
    });
  });

  describe('whose leader resigns', () => {
    it('notifies it first, then waits for callbacks and work, and then lets the next one in', async () => {
      const story: string[] = [];
      const [workEnds, cleanedUp, loopEnds] = [gate(), gate(), gate()];
      const leader = stand(a, {
        async onElected({ signal }) {
          signal.addEventListener('abort', () => story.push(`told, leader: ${leader.isLeader()}`));
          await loopEnds.opened;
          story.push('loop ended');
        },
        async onDemoted(reason, term) {
          story.push(`demoted: ${reason.reason}, held: ${term.isHeld()}`);
          await cleanedUp.opened;
          story.push('cleaned up');
        },
      });
      const candidate = stand(b, { onElected: () => void story.push('next') });
      await settle();
      const work = track(
        leader.run(async () => {
          await workEnds.opened;
          story.push('work ended');
          return 'result';
        }),
      );
      const resigned = track(leader.resign());
      expect(story).toEqual(['told, leader: false']);
      expect(await leader.run(() => 'ran')).toBeUndefined();
      for (const { open } of [cleanedUp, workEnds, loopEnds]) {
        await world.clock.advance(3 * LEASE_MS); // the lease is renewed meanwhile
        expect(resigned.state).toBe('pending');
        expect(candidate.isLeader()).toBe(false);
        open();
      }
      await settle();
      expect(story.slice(1)).toEqual([
        'demoted: resigned, held: true',
        'cleaned up',
        'work ended',
        'loop ended',
        'next',
      ]);
      expect([resigned.state, work.value]).toEqual(['fulfilled', 'result']);
      expect(leader.signal.reason).toMatchObject({ code: 'NOT_LEADER', reason: 'resigned' });
      await world.clock.advance(10 * LEASE_MS);
      expect(candidate.isLeader()).toBe(true); // and the one that resigned does not stand
    });

    it.each(['work', 'onElected', 'onDemoted'] as const)('does not wait for itself in its own %s', async (where) => {
      let resigned = false;
      const resign = async (): Promise<void> => {
        await leader.resign();
        resigned = true;
      };
      const leader = stand(a, where === 'work' ? {} : { [where]: resign });
      await settle();
      if (where === 'work') await leader.run(resign);
      if (where === 'onDemoted') await leader.resign();
      await settle();
      expect(resigned).toBe(true);
      expect(world.server.isEmpty).toBe(true);
    });

    it('and Redis does not answer: it does not lead here, and the observers receive the release', async () => {
      const leader = stand(a);
      await settle();
      a.store.fates.release = lostOnTheWay;
      const resigned = track(leader.resign());
      await world.clock.advance(1_000);
      expect(resigned.state).toBe('fulfilled');
      expect(eventsOf(a, 'releaseFailed')).toHaveLength(1);
    });

    it('by its signal', async () => {
      const controller = new AbortController();
      const leader = stand(a, { signal: controller.signal });
      await settle();
      controller.abort();
      expect(leader.isLeader()).toBe(false);
      await settle();
      expect(world.server.isEmpty).toBe(true);
      expect(stand(b, { signal: AbortSignal.abort() }).signal.reason).toMatchObject({ reason: 'resigned' });
      await settle();
      expect(b.store.commands).toEqual([]);
    });
  });

  describe('when Redis', () => {
    it('refuses is retried, with pauses that grow to half a minute, and reported each time', async () => {
      a.store.fates.acquire = failing('refused', 'NOPERM');
      const leader = stand(a);
      await world.clock.advance(10 * 60_000);
      const failed = eventsOf(a, 'campaignFailed');
      expect(failed.length).toBeGreaterThan(15);
      expect(failed.length).toBeLessThan(30);
      expect(failed[0]).toMatchObject({ leadership: 'mailer', error: { code: 'LOCK_UNAVAILABLE' } });
      expect(eventsOf(a, 'notAcquired')).toHaveLength(failed.length);
      delete a.store.fates.acquire;
      await world.clock.advance(40_000);
      expect(leader.isLeader()).toBe(true);
    });

    it('does not answer is retried without a report', async () => {
      a.store.all(lostOnTheWay);
      const leader = stand(a);
      await world.clock.advance(10 * 60_000);
      expect(eventsOf(a, 'campaignFailed')).toEqual([]);
      a.store.all((execute) => execute());
      await world.clock.advance(2_000);
      expect(leader.isLeader()).toBe(true);
    });
  });

  describe('with callbacks', () => {
    it('that throw: the observers are notified, and nothing else happens', async () => {
      const leader = stand(a, {
        onElected: () => {
          throw new Error('elected');
        },
        onDemoted: () => Promise.reject(new Error('demoted')),
      });
      await settle();
      expect(leader.isLeader()).toBe(true);
      await leader.resign();
      expect(eventsOf(a, 'callbackFailed')).toMatchObject([
        { callback: 'onElected', error: { message: 'elected' } },
        { callback: 'onDemoted', error: { message: 'demoted' } },
      ]);
      expect(world.server.isEmpty).toBe(true);
    });

    it('runs them in the context of the term, without the locks of its caller', async () => {
      const seen: unknown[] = [];
      const look = (): unknown => seen.push([a.locks.current()?.resource, a.locks.current('order') === undefined]);
      await a.locks.using('order', undefined, async () => {
        const leader = stand(a, { onElected: look, onDemoted: look });
        await leader.whenElected();
        stand(a, { onElected: look });
        await leader.resign();
      });
      expect(seen).toEqual(Array(3).fill(['leader:mailer', true]));
    });
  });

  describe('that one instance requests twice', () => {
    it('is one candidate; a later caller gets the current term', async () => {
      const story: string[] = [];
      const first = stand(a, {
        onElected: () => void story.push('first'),
        onDemoted: () => void story.push('first ends'),
      });
      await settle();
      const second = a.locks.campaign('mailer', {
        // Not before campaign() has returned.
        onElected: () => void (second.isLeader() && story.push('second')),
        onDemoted: () => void story.push('second ends'),
      });
      expect(second).toBe(first);
      expect(a.locks.leadership('mailer')).toBe(first);
      await settle();
      await second.resign();
      expect(story).toEqual(['first', 'second', 'first ends', 'second ends']);
      expect(a.locks.leadership('mailer')).toBeUndefined();
    });
  });

  describe('with work', () => {
    it('runs it on the leader only, with the term as the lease of its context', async () => {
      const [leader, candidate] = [stand(a), stand(b)];
      await settle();
      const seen = await leader.run((term) => {
        expect(a.locks.current('leader:mailer')).toBe(term);
        return term.fencingToken;
      });
      expect(seen).toBe(leader.fencingToken);
      expect(await candidate.run(() => 'ran')).toBeUndefined();
      expect(leader.isLeader()).toBe(true); // its end releases nothing
    });

    it('that releases the term gives the others their turn, once it has ended', async () => {
      const [leader, candidate] = [stand(a), stand(b)];
      await settle();
      await leader.run(async () => {
        await a.locks.current('leader:mailer')!.release();
        await settle();
        expect(candidate.isLeader()).toBe(false);
      });
      await settle();
      expect(candidate.isLeader()).toBe(true);
      await candidate.resign();
      await settle();
      expect(leader.isLeader()).toBe(true);
    });
  });

  it.each<[string, unknown]>([
    ['leaseMs', { leaseMs: 1 }],
    ['onElected', { onElected: 'x' }],
    ['onDemoted', { onDemoted: 1 }],
    ['signal', { signal: {} }],
    ['waitMs', { waitMs: 1 }],
  ])('refuses a bad %s before anything is sent', async (option, options) => {
    expect(() => a.locks.campaign('mailer', options as CampaignOptions)).toThrow(InvalidLockOptionsError);
    expect(() => a.locks.campaign('mailer', options as CampaignOptions)).toThrow(option);
    expect(() => a.locks.campaign('')).toThrow(InvalidLockOptionsError);
    await settle();
    expect(a.store.commands).toEqual([]);
  });
});

describe('when the application of a candidate shuts down', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  const stand = (instance: Instance, onDemoted?: () => unknown) =>
    instance.locks.campaign('mailer', { leaseMs: LEASE_MS, ...(onDemoted && { onDemoted }) });

  beforeEach(async () => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it.each([10_000, 0])('an idle leader steps down at once, and the next one leads: drainMs %d', async (drainMs) => {
    const reasons: unknown[] = [];
    const leader = a.locks.campaign('mailer', { onDemoted: ({ reason }) => reasons.push(reason) });
    const next = stand(b);
    await settle();
    const shutdown = track(a.locks.shutdown(drainMs));
    expect(leader.isLeader()).toBe(false);
    await settle();
    expect([shutdown.state, next.isLeader()]).toEqual(['fulfilled', true]);
    expect(leader.signal.reason).toMatchObject({ code: 'NOT_LEADER', reason: 'shutdown' });
    expect(reasons).toEqual(['shutdown']);
    expect(eventsOf(a, 'lost')).toEqual([]);
  });

  it('running work and callbacks have drainMs; then the next one leads at once', async () => {
    const [work, cleanUp] = [gate(), gate()];
    const leader = stand(a, () => cleanUp.opened);
    const next = stand(b);
    await settle();
    const done = track(leader.run(() => work.opened.then(() => 'done')));
    const shutdown = track(a.locks.shutdown(10_000));
    expect(leader.signal.aborted).toBe(true);
    expect(await leader.run(() => 'ran')).toBeUndefined();
    await world.clock.advance(2 * LEASE_MS);
    work.open();
    await world.clock.advance(LEASE_MS);
    expect([shutdown.state, next.isLeader()]).toEqual(['pending', false]);
    cleanUp.open();
    await settle();
    expect([done.value, shutdown.state, next.isLeader()]).toEqual(['done', 'fulfilled', true]);
    expect(eventsOf(a, 'lost')).toEqual([]);
  });

  it('hanging work holds the lease until it expires: no other instance leads while it may still run', async () => {
    const leader = stand(a);
    const next = stand(b);
    await settle();
    track(leader.run(() => new Promise(() => {})));
    const shutdown = track(a.locks.shutdown(1_000));
    await world.clock.advance(1_500);
    expect([shutdown.state, next.isLeader()]).toEqual(['fulfilled', false]);
    expect(eventsOf(a, 'lost')).toMatchObject([{ reason: 'shutdown' }]);
    await world.clock.advance(LEASE_MS + 1_250);
    expect(next.isLeader()).toBe(true);
  });

  it.each(Array.from({ length: 12 }, (_, ticks) => ticks))(
    'in the moment of its election: the lease is given back (%i microtasks later)',
    async (ticks) => {
      const reply = gate();
      a.store.next('acquire', repliedWhen(reply.opened));
      const leader = stand(a);
      await settle();
      reply.open();
      for (let i = 0; i < ticks; i++) await Promise.resolve();
      const shutdown = track(a.locks.shutdown(10_000));
      await settle();
      expect([shutdown.state, leader.isLeader()]).toEqual(['fulfilled', false]);
      expect(world.server.isEmpty).toBe(true);
      expect(world.clock.timers).toBe(0);
    },
  );

  it('a campaign that begins after the shutdown ends immediately', async () => {
    await a.locks.shutdown(0);
    const late = stand(a);
    expect(late.isLeader()).toBe(false);
    expect(late.signal.reason).toMatchObject({ reason: 'shutdown' });
    await expect(late.whenElected()).rejects.toMatchObject({ reason: 'shutdown' });
    await late.resign();
    expect(a.locks.leadership('mailer')).toBeUndefined();
    expect(a.store.commands).toEqual([]);
  });
});

const WITHIN_MS = 30_000;

type Kind = LeadershipIncident['kind'];

const incidents = (kinds: readonly Kind[]): fc.Arbitrary<readonly LeadershipIncident[]> =>
  fc.array(
    fc.record({
      at: fc.nat(WITHIN_MS),
      on: fc.nat(4),
      kind: fc.constantFrom(...kinds),
      lastingMs: fc.nat(8_000),
    }),
    { minLength: 5, maxLength: 30, size: 'max' },
  );

const plan = (kinds: readonly Kind[], network: fc.Arbitrary<LeadershipPlan['network']>): fc.Arbitrary<LeadershipPlan> =>
  fc.record({ seed: fc.nat(), instances: fc.integer({ min: 2, max: 5 }), network, incidents: incidents(kinds) });

/** Seed and path that fast-check prints with a failure repeat the smallest failing plan. */
const RUNS = {
  seed: 20260101,
  numRuns: runs(100, 50),
  interruptAfterTimeLimit: PATIENCE_MS,
};

describe('candidates that come and go', () => {
  it('on a bad network, killed, stopped and cut off: one leads at a time, with a token larger than all before', async () => {
    let terms = 0;
    let plans = 0;
    const everything: Kind[] = [
      'resign',
      'stand',
      'stand',
      'release',
      'work',
      'kill',
      'vanish',
      'stop',
      'stop',
      'silence',
      'silence',
      'reconnect',
    ];
    const network = fc.record({
      kind: fc.constantFrom('inOrder' as const, 'unordered', 'lossless'),
      trouble: fc.constantFrom(0, 0.05, 0.2, 0.5),
      delayMs: fc.constantFrom(20, 300, 2_500),
    });
    const property = fc.asyncProperty(plan(everything, network), async (one) => {
      const simulation = new LeadershipSimulation(one);
      await simulation.run();
      plans++;
      terms += simulation.tokens.length;
    });
    await fc.assert(property, RUNS);
    // One leads at the end of each plan. Or it has proved nothing: on average, another one has led before.
    expect(terms).toBeGreaterThan(2 * plans);
  });

  it('on a good network, also killed: a leadership is vacant no longer than a lease and a heartbeat', async () => {
    let longest = 0;
    const network = fc.constant({ kind: 'inOrder' as const, trouble: 0, delayMs: 20 });
    const orderly: Kind[] = ['resign', 'stand', 'stand', 'release', 'work', 'kill'];
    const property = fc.asyncProperty(plan(orderly, network), async (one) => {
      const simulation = new LeadershipSimulation(one);
      await simulation.run();
      longest = Math.max(longest, simulation.longestVacancyMs);
      expect(simulation.longestVacancyMs).toBeLessThan(LeadershipSimulation.longestVacancyMs);
    });
    await fc.assert(property, RUNS);
    expect(longest).toBeGreaterThan(2_000); // some leader did die
  });
});
