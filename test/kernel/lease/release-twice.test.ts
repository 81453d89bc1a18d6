import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, failing } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

describe('releases inside of releases', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('a release that is called again by its observer passes the lock on once', async () => {
    const first = await a.locks.acquire('stock');
    a.locks.observers.add(({ type }) => {
      if (type === 'released') void first.release();
    });
    const line = [1, 2].map(() => track(a.locks.acquire('stock')));
    await first.release();
    await settle();
    const held = line.filter(({ state }) => state === 'fulfilled').filter(({ value }) => value.isHeld());
    expect(held).toHaveLength(1);
  });

  it('a caller that gives up when it observes the release is not granted, and the next one is', async () => {
    const first = await a.locks.acquire('stock');
    const controller = new AbortController();
    a.locks.observers.add(({ type }) => {
      if (type === 'released') controller.abort();
    });
    const leaving = track(a.locks.acquire('stock', { signal: controller.signal }));
    const staying = track(a.locks.acquire('stock'));
    await first.release();
    await settle();
    expect([leaving.state, staying.state]).toEqual(['rejected', 'fulfilled']);
    await staying.value.release();
    await settle();
    expect(world.server.isEmpty).toBe(true);
  });

  it('a verify() that is answered after the lease was passed on ends the current lease of the lock', async () => {
    const first = await a.locks.acquire('stock');
    const waiting = track(a.locks.acquire('stock'));
    const arrival = gate();
    a.store.next('verify', executedWhen(arrival.opened));
    const verifying = track(first.verify());
    await first.release();
    await b.store.release({ resource: 'stock', id: a.store.sent('acquire')[0]!.owner!, mode: 'exclusive' });
    arrival.open();
    await settle();
    expect(verifying.value).toBe(false);
    expect(waiting.value.isHeld()).toBe(false);
  });

  it.each(['a lease', 'a lease of several resources'])('%s reports a failed release once', async (what) => {
    const lease = await a.locks.acquire(what === 'a lease' ? 'stock' : ['stock', 'table']);
    a.store.next('release', failing('unknown', 'the connection broke'));
    const [first, meanwhile] = [track(lease.release()), track(lease.release())];
    await settle();
    expect(first.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'release' });
    expect(meanwhile.state).toBe('fulfilled');
    await lease.release();
    expect(eventsOf(a, 'releaseFailed')).toHaveLength(1);
    await world.clock.advance(1_000);
    expect(world.server.isEmpty).toBe(true); // it was sent again in the background
  });
});
