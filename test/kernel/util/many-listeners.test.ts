import { getEventListeners } from 'node:events';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';

const CALLS = 20;

/** The result of `events.getMaxListeners`, which does not recognize Jest's AbortSignal. */
function limitOf(signal: AbortSignal): unknown {
  const names = Object.getOwnPropertySymbols(signal);
  const name = names.find(({ description }) => description === 'events.maxEventTargetListeners');
  return (signal as unknown as Record<symbol, unknown>)[name!];
}

describe('one signal for more than ten calls', () => {
  let world: LockWorld;
  let a: Instance;
  let given: AbortController;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    given = new AbortController();
  });

  const listeners = (): number => getEventListeners(given.signal, 'abort').length;
  const calls = <T>(call: (index: number) => Promise<T>) => Array.from({ length: CALLS }, (_, index) => call(index));

  it.each(['in line', 'polling'] as const)(
    'has one listener while they wait %s, and none when they are over',
    async (how) => {
      const lease = await a.locks.acquire('stock');
      const retry = how === 'polling' ? { next: () => 100 } : undefined;
      const waiting = calls(() => a.locks.acquire('stock', { signal: given.signal, waitMs: 5_000, retry }));
      const outcomes = Promise.allSettled(waiting);
      await settle();
      expect(listeners()).toBe(1);
      await lease.release();
      await world.clock.advance(10);
      given.abort();
      expect(listeners()).toBe(0);
      const states = (await outcomes).map(({ status }) => status);
      expect(new Set(states)).toEqual(how === 'polling' ? new Set(['rejected']) : new Set(['fulfilled', 'rejected']));
    },
  );

  it('ends the calls that use it, and no others', async () => {
    await a.locks.acquire('stock');
    const mine = calls(() => a.locks.acquire('stock', { signal: given.signal, waitMs: 1_000 }));
    const other = a.locks.acquire('stock', { waitMs: 1_000 });
    const outcomes = Promise.allSettled([...mine, other]);
    await settle();
    given.abort();
    await world.clock.advance(1_000);
    const codes = (await outcomes).map((outcome) => (outcome as PromiseRejectedResult).reason.code as string);
    expect(codes).toEqual([...Array(CALLS).fill('LOCK_ABORTED'), 'LOCK_TIMEOUT']);
  });

  it('has one listener for waits until a resource is free and campaigns too', async () => {
    await world.instance('b').locks.acquire('busy');
    const { signal } = given;
    const waits = Promise.allSettled(calls(() => a.locks.watches.waitUntilFree('busy', { signal })));
    const campaigns = calls(async (n) => a.locks.campaign(`leader-${n}`, { signal: given.signal }));
    await settle();
    expect(listeners()).toBe(1);
    given.abort();
    expect(new Set((await waits).map(({ status }) => status))).toEqual(new Set(['rejected']));
    for (const leadership of await Promise.all(campaigns)) expect(leadership.isLeader()).toBe(false);
    expect(listeners()).toBe(0);
  });

  it('of a lease may have any number of listeners', async () => {
    const lease = await a.locks.acquire('stock');
    const several = await a.locks.acquire(['price', 'size']);
    expect([lease, several].map(({ signal }) => limitOf(signal))).toEqual([0, 0]);
  });
});
