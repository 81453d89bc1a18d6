import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { repliedWhen } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

describe('waiting in the queue', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('costs one command: the grant arrives as a message', async () => {
    const lease = await a.locks.acquire('stock');
    const waiting = track(b.locks.acquire('stock'));
    await world.clock.advance(500);
    await lease.release();
    await settle();
    expect(waiting.state).toBe('fulfilled');
    expect(b.store.commands.map(({ verb }) => verb)).toEqual(['acquire']);
  });

  it('accepts a grant that arrives before the reply of the command that queued it', async () => {
    const lease = await a.locks.acquire('stock');
    const reply = gate();
    b.store.next('acquire', repliedWhen(reply.opened));
    const waiting = track(b.locks.acquire('stock'));
    await settle();
    await lease.release(); // b is granted while its "queued" is still on the way
    await settle();
    expect(waiting.state).toBe('fulfilled');
    reply.open();
    await settle();
    expect(b.store.commands).toHaveLength(1);
    expect(await waiting.value.verify()).toBe(true);
  });

  it('is skipped when the waiter has given up', async () => {
    const c = world.instance('c');
    const lease = await a.locks.acquire('stock');
    const controller = new AbortController();
    const first = track(b.locks.acquire('stock', { signal: controller.signal }));
    await settle();
    const second = track(c.locks.acquire('stock'));
    await settle();
    controller.abort();
    await lease.release();
    await settle();
    expect(first.state).toBe('rejected');
    expect(second.state).toBe('fulfilled');
  });

  it('passes on a grant that arrives together with the abort', async () => {
    const c = world.instance('c');
    const lease = await a.locks.acquire('stock');
    const controller = new AbortController();
    const first = track(b.locks.acquire('stock', { signal: controller.signal }));
    await settle();
    const second = track(c.locks.acquire('stock'));
    await settle();
    const releasing = lease.release();
    controller.abort();
    await releasing;
    await settle();
    expect(first.state).toBe('rejected');
    expect(second.state).toBe('fulfilled');
  });

  it('separates processes that have the same name by mistake', async () => {
    const [first, second, third] = [1, 2, 3].map(() => world.instance('same')) as [Instance, Instance, Instance];
    const lease = await first.locks.acquire('stock');
    const waiting = [second, third].map(({ locks }) => track(locks.acquire('stock')));
    await settle();
    await lease.release();
    await settle();
    expect(waiting.map(({ state }) => state)).toEqual(['fulfilled', 'pending']);
    expect(await waiting[0]!.value.verify()).toBe(true);
  });
});
