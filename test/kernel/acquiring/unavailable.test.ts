import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { QuorumWorld } from '../../support/world/quorum-world.js';
import { answered, failing, lostOnTheWay } from '../../support/world/scripted-store.js';
import { track, type Tracked } from '../../support/expect/tracked.js';

const DOWN = 'not connected to Redis (connect ECONNREFUSED)';

describe('a Redis that is not connected (unavailableMs)', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const goAway = ({ store } = b) => {
    store.all(failing('notExecuted', DOWN));
    store.trouble = () => new LockStoreError('notExecuted', DOWN);
    store.unprove();
  };
  const comeBack = ({ store } = b) => {
    store.all(answered);
    store.trouble = () => undefined;
    store.reconnect();
  };
  const wait = (options: LockOptions = {}, locks = b.locks) => track(locks.acquire('stock', options));
  const code = ({ error }: Pick<Tracked<unknown>, 'error'>) => (error as { code?: string } | undefined)?.code;

  const WAYS = [
    ['queues', {}],
    ['polls', { retry: fixedInterval({ intervalMs: 50 }) }],
    ['wants several', { several: true }],
  ] as const;

  it.each(WAYS)('ends a call that %s after 2 s, long before waitMs, and reports it', async (_, how) => {
    goAway();
    const names = 'several' in how ? ['stock', 'table'] : 'stock';
    const call = track(b.locks.acquire(names as string, { waitMs: 20_000, ...('retry' in how ? how : {}) }));
    await world.clock.advance(1_999);
    expect(call.state).toBe('pending');
    await world.clock.advance(1);
    expect(call.error).toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      lastAttempt: 'failed',
      message: `Redis could not acquire "stock": ${DOWN}. The call waited 2 s for it (unavailableMs)`,
    });
  });

  it.each([
    [0, 20_000, 0],
    [300, 20_000, 300],
    [300, 200, 200],
    [60_000, 7_000, 7_000],
    [Infinity, 7_000, 7_000],
  ])('%d with waitMs %d: the call fails after %d ms', async (unavailableMs, waitMs, afterMs) => {
    goAway();
    const call = wait({ unavailableMs, waitMs });
    await world.clock.advance(Math.max(0, afterMs - 1));
    if (afterMs > 0) expect(call.state).toBe('pending');
    await world.clock.advance(1);
    expect(code(call)).toBe('LOCK_UNAVAILABLE');
    const isNamed = (call.error as Error).message.includes('unavailableMs');
    expect(isNamed).toBe(unavailableMs < waitMs);
  });

  it('follows the module option, or the option of the call if both are set', async () => {
    const c = world.instance('c', { defaults: { unavailableMs: 500 } });
    goAway(c);
    const [own, called] = [wait({}, c.locks), wait({ unavailableMs: 700 }, c.locks)];
    await world.clock.advance(500);
    expect([code(own), code(called)]).toEqual(['LOCK_UNAVAILABLE', undefined]);
    await world.clock.advance(200);
    expect(code(called)).toBe('LOCK_UNAVAILABLE');
  });

  it.each(WAYS)('lets a call that %s continue if it recovers in time', async (_, how) => {
    goAway();
    const names = 'several' in how ? ['stock', 'table'] : 'stock';
    const call = track(b.locks.acquire(names as string, { waitMs: 20_000, ...('retry' in how ? how : {}) }));
    await world.clock.advance(1_900);
    comeBack();
    await world.clock.advance(500);
    expect(call.value.isHeld()).toBe(true);
  });

  it('does not end a call if it is connected again, but has not answered yet', async () => {
    goAway();
    const calls = [wait(), wait(), wait({ retry: fixedInterval({ intervalMs: 400 }) })];
    await world.clock.advance(1_950);
    b.store.all(lostOnTheWay);
    b.store.trouble = () => undefined;
    await world.clock.advance(1_000);
    expect(calls.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending']);
    comeBack();
    await world.clock.advance(100);
    expect(calls.filter(({ state }) => state === 'fulfilled')).toHaveLength(1);
  });

  it('is noticed within a second by a queued call, if no message reports it', async () => {
    b.store.hearing!.trustedForMs = 0;
    await a.locks.acquire('stock');
    const call = wait({ waitMs: 60_000 });
    await world.clock.advance(10_000);
    b.store.all(failing('notExecuted', DOWN));
    b.store.trouble = () => new LockStoreError('notExecuted', DOWN);
    await world.clock.advance(2_000 + 1_300);
    expect(code(call)).toBe('LOCK_UNAVAILABLE');
  });

  it('does not apply to a connected Redis that does not answer, or not in time', async () => {
    b.store.all(lostOnTheWay);
    const hung = wait({ waitMs: 5_000 });
    await world.clock.advance(4_999);
    expect(hung.state).toBe('pending');
    await world.clock.advance(1);
    expect(hung.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'timeout' });
    expect((hung.error as Error).message).not.toContain('unavailableMs');
  });

  it('does not end a campaign, which continues until Redis recovers', async () => {
    goAway();
    const leadership = b.locks.campaign('mail');
    await world.clock.advance(60_000);
    comeBack();
    await world.clock.advance(2_000);
    expect(leadership.isLeader()).toBe(true);
  });

  it('ends the wait until a resource is free', async () => {
    await a.locks.acquire('stock');
    const call = track(b.locks.watches.waitUntilFree('stock', { waitMs: 60_000 }));
    await world.clock.advance(10_000);
    goAway();
    await world.clock.advance(1_990);
    expect(code(call)).toBeUndefined();
    await world.clock.advance(1_500);
    expect(call.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect((call.error as Error).message).toContain('unavailableMs');
  });

  it('means that a quorum lost its majority, and not one of its nodes', async () => {
    const quorum = new QuorumWorld();
    const { locks } = quorum.client();
    quorum.down(0);
    await quorum.until(locks.acquire('chair'));
    quorum.down(0, 1);
    const call = track(locks.acquire('stock', { waitMs: 60_000 }));
    await quorum.clock.advance(1_990);
    expect(call.state).toBe('pending');
    await quorum.clock.advance(300);
    expect(call.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect((call.error as Error).message).toContain('unavailableMs');
    const other = track(locks.acquire('stock', { waitMs: 60_000 }));
    await quorum.clock.advance(1_500);
    quorum.down();
    await quorum.clock.advance(2_000);
    expect(other.value.isHeld()).toBe(true);
  });
});
