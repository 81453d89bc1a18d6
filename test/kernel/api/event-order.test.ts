import { gate, track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { repliedWhen } from '../../support/world/scripted-store.js';

/** Tests the promises of docs/reference/events.md about the order of events. */
describe('the order of events', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  /** The events of all observers, in order. */
  let told: string[];

  beforeEach(() => {
    world = new LockWorld();
    told = [];
    [a, b] = ['a', 'b'].map((name) => {
      const instance = world.instance(name);
      instance.locks.observers.add(({ type }) => void told.push(`${name} ${type}`));
      return instance;
    }) as [Instance, Instance];
  });

  it('observers get a lease before acquire() resolves, and its end before release() resolves', async () => {
    const lease = await a.locks.acquire('stock').finally(() => told.push('acquire() resolves'));
    await lease.release().finally(() => told.push('release() resolves'));
    expect(told).toEqual(['a acquired', 'acquire() resolves', 'a released', 'release() resolves']);
  });

  it('release() resolves before the event with backgroundRelease', async () => {
    const lease = await a.locks.acquire('stock', { backgroundRelease: true });
    await lease.release().finally(() => told.push('release() resolves'));
    await settle();
    expect(told).toEqual(['a acquired', 'release() resolves', 'a released']);
  });

  it('a lost lease ends once: its release emits another type', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: 1_000, watchdog: false });
    await world.clock.advance(1_000);
    await lease.release();
    expect(told).toEqual(['a acquired', 'a lost', 'a releasedAfterLoss']);
  });

  it('in memory, the former lease ends before the next one begins', async () => {
    const first = await a.locks.acquire('stock');
    const second = track(a.locks.acquire('stock'));
    await first.release();
    await settle();
    expect(second.state).toBe('fulfilled');
    expect(a.store.sent('rotate')).toEqual([]);
    expect(told).toEqual(['a acquired', 'a waiting', 'a released', 'a acquired']);
  });

  it('the next lease of the same process may begin first if it takes a command', async () => {
    const first = await a.locks.acquire('stock', { strictOrder: true });
    const second = track(a.locks.acquire('stock', { strictOrder: true }));
    await first.release();
    await settle();
    expect(second.value.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(told).toEqual(['a acquired', 'a waiting', 'a acquired', 'a released']);
  });

  it('the next lease of another process may begin first; its token is larger in any order', async () => {
    const first = await a.locks.acquire('stock');
    const second = track(b.locks.acquire('stock'));
    await settle();
    const reply = gate();
    a.store.next('release', repliedWhen(reply.opened));
    const releasing = first.release();
    await settle();
    expect(told).toEqual(['a acquired', 'b waiting', 'b acquired']);
    reply.open();
    await releasing;
    expect(told).toEqual(['a acquired', 'b waiting', 'b acquired', 'a released']);
    expect(second.value.fencingToken).toBeGreaterThan(first.fencingToken);
  });
});
