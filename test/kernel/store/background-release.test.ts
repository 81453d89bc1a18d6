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
