import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, lostOnTheWay, repliedWhen } from '../../support/world/scripted-store.js';
import { gate } from '../../support/expect/tracked.js';

describe('a release in the background', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('does not wait for the answer of Redis, which the observers learn of', async () => {
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

  it('is how every lock ends where the module says so', async () => {
    const c = world.instance('c', { defaults: { backgroundRelease: true } });
    c.store.fates.release = lostOnTheWay;
    expect(await c.locks.using('stock', undefined, () => 'done')).toBe('done');
  });

  it('that fails is told to the observers, tried again, and no error of anybody', async () => {
    const lease = await a.locks.acquire('stock', { backgroundRelease: true });
    a.store.next('release', failing('unknown'));
    await lease.release();
    await world.clock.advance(1_000);
    expect(eventsOf(a, 'releaseFailed')).toMatchObject([{ resource: 'stock', error: { code: 'LOCK_UNAVAILABLE' } }]);
    expect(a.store.sent('release')).toHaveLength(2);
    expect(await b.locks.tryAcquire('stock')).not.toBeNull();
  });
});
