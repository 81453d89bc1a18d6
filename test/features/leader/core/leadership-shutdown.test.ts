import { settle } from '../../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../../support/world/lock-world.js';
import { repliedWhen } from '../../../support/world/scripted-store.js';
import { gate, track } from '../../../support/expect/tracked.js';

const LEASE_MS = 3_000;

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
