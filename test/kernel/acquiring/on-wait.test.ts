import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockOptions, PlaceInLine } from '../../../lib/kernel/api/lock-options.js';
import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { rejection } from '../../support/expect/eventually.js';
import { track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { answered, lostOnTheWay } from '../../support/world/scripted-store.js';

/** Shorter waits are not reported. */
const SHORT_MS = 50;

describe('onWait', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let c: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b, c] = ['a', 'b', 'c'].map((name) => world.instance(name)) as [Instance, Instance, Instance];
  });

  /** A call, and the places that it was told: how many are ahead, and the instance that holds the resource. */
  const wait = ({ locks }: Instance, options: LockOptions = {}) => {
    const told: string[] = [];
    const onWait = ({ ahead, holder }: PlaceInLine) => told.push(`${ahead} ${holder?.instanceId}`);
    const call = track(locks.acquire('stock', { waitMs: Infinity, onWait, ...options }));
    return { told, call };
  };
  const plain = ({ locks }: Instance) => track(locks.acquire('stock', { waitMs: Infinity }));

  it('is not called, and sends nothing, if the resource is free', async () => {
    const { told, call } = wait(a);
    await settle();
    await call.value.release();
    await world.clock.advance(10_000);
    expect(told).toEqual([]);
    expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'release']);
    expect(a.locks.stats().alarms).toBe(0);
  });

  it('is not called for a short wait', async () => {
    const lease = await a.locks.acquire('stock');
    const { told, call } = wait(b);
    await world.clock.advance(SHORT_MS - 1);
    await lease.release();
    await world.clock.advance(10_000);
    expect([told, call.state]).toEqual([[], 'fulfilled']);
  });

  it('counts the processes that came before, and then fewer of them', async () => {
    const lease = await a.locks.acquire('stock');
    const first = plain(b);
    await settle();
    const { told } = wait(c);
    await world.clock.advance(SHORT_MS);
    expect(told).toEqual(['1 a']);
    await world.clock.advance(5_000);
    expect(told).toEqual(['1 a']);
    await lease.release();
    await world.clock.advance(1_250);
    expect([told, first.state]).toEqual([['1 a', '0 b'], 'fulfilled']);
  });

  it('counts the calls of its own process that came before, too', async () => {
    await a.locks.acquire('stock');
    plain(b);
    await settle();
    const calls = [plain(c), wait(c), wait(c)] as const;
    await world.clock.advance(SHORT_MS);
    expect([calls[1].told, calls[2].told]).toEqual([['2 a'], ['3 a']]);
  });

  it('counts those before a call whose own process holds the resource', async () => {
    const lease = await a.locks.acquire('stock');
    plain(b);
    await settle();
    const calls = [wait(a), wait(a)] as const;
    await world.clock.advance(SHORT_MS);
    // It has a place in Redis, behind b. Without that, it would be told that it is the next.
    expect(calls.map(({ told }) => told)).toEqual([['1 a'], ['2 a']]);
    await lease.release();
    await world.clock.advance(1_250);
    expect(calls.map(({ told }) => told)).toEqual([
      ['1 a', '0 b'],
      ['2 a', '1 b'],
    ]);
  });

  it('is called at most once a second, with the newest place', async () => {
    const lease = await a.locks.acquire('stock');
    const ends = [new AbortController(), new AbortController()];
    for (const { signal } of ends) track(b.locks.acquire('stock', { waitMs: Infinity, signal }));
    const { told } = wait(b);
    await world.clock.advance(SHORT_MS);
    for (const end of ends) {
      end.abort();
      await world.clock.advance(100);
    }
    expect(told).toEqual(['2 a']);
    await world.clock.advance(1_000);
    expect(told).toEqual(['2 a', '0 a']);
    await lease.release();
  });

  it('asks Redis once a second for all calls of a process, and no oftener', async () => {
    await a.locks.acquire('stock');
    plain(b);
    for (let call = 0; call < 10; call++) wait(c);
    await world.clock.advance(10_000);
    expect(c.store.sent('acquire')).toHaveLength(1);
    expect(c.store.sent('keep').length).toBeLessThanOrEqual(10);
    // Without the callback, a place is kept every third of its lease.
    expect(b.store.sent('keep').length).toBeLessThanOrEqual(3);
  });

  it('knows the calls of its own process only if the store gives no places', async () => {
    for (const { store } of [a, b, c]) store.keepsNoPlaces();
    await a.locks.acquire('stock');
    c.store.all(async (execute) => {
      const reply = (await execute()) as { place?: number };
      delete reply.place;
      return reply as never;
    });
    plain(b);
    await settle();
    const calls = [wait(c), wait(c)] as const;
    await world.clock.advance(SHORT_MS);
    expect(calls.map(({ told }) => told)).toEqual([['0 a'], ['1 a']]);
  });

  it('is not called while Redis does not answer', async () => {
    await a.locks.acquire('stock');
    b.store.all(lostOnTheWay);
    const { told } = wait(b, { attemptTimeoutMs: 500 });
    await world.clock.advance(5_000);
    expect(told).toEqual([]);
    b.store.all(answered);
    await world.clock.advance(1_250);
    expect(told).toEqual(['0 a']);
  });

  it('ends with the call, and leaves nothing behind', async () => {
    const lease = await a.locks.acquire('stock');
    const { told, call } = wait(b, { waitMs: 2_000 });
    await world.clock.advance(2_000);
    expect(call.error).toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(b.locks.stats().alarms).toBe(0);
    await lease.release();
    await world.clock.advance(5_000);
    expect(told).toEqual(['0 a']);
  });

  it('runs in the async context of the call', async () => {
    const request = new AsyncLocalStorage<string>();
    await a.locks.acquire('stock');
    const seen: unknown[] = [];
    const onWait = () => seen.push(request.getStore());
    request.run('one', () => track(b.locks.acquire('stock', { waitMs: Infinity, onWait })));
    request.run('two', () => track(b.locks.acquire('stock', { waitMs: Infinity, onWait })));
    await world.clock.advance(SHORT_MS);
    expect(seen).toEqual(['one', 'two']);
  });

  it('may abort its own wait, and the waits before it', async () => {
    await a.locks.acquire('stock');
    const end = new AbortController();
    const [first, second] = [
      wait(b, { signal: end.signal }),
      wait(b, { signal: end.signal, onWait: () => end.abort() }),
    ];
    const third = wait(b);
    await world.clock.advance(SHORT_MS);
    expect([first.call.state, second.call.state, third.call.state]).toEqual(['rejected', 'rejected', 'pending']);
    await world.clock.advance(1_000);
    expect(third.told).toEqual(['2 a', '0 a']);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('boom');
      },
    ],
    ['rejects', () => Promise.reject(new Error('boom'))],
  ])('is reported and changes nothing if it %s', async (_, fails) => {
    const lease = await a.locks.acquire('stock');
    const { call } = wait(b, { onWait: fails as () => void, group: 'chats' });
    const { told } = wait(b);
    await world.clock.advance(SHORT_MS);
    expect(eventsOf(b, 'callbackFailed')).toEqual([
      {
        type: 'callbackFailed',
        service: 'default',
        group: 'chats',
        resource: 'stock',
        callback: 'onWait',
        error: new Error('boom'),
      },
    ]);
    await lease.release();
    await settle();
    expect([call.state, told]).toEqual(['fulfilled', ['1 a']]);
  });

  it('works for semaphores, and for calls that want several resources', async () => {
    const semaphore = ({ locks }: Instance) => locks.semaphore('exports', { permits: 1 });
    await semaphore(a).acquire();
    await a.locks.acquire('y');
    const told: unknown[] = [];
    const onWait = ({ ahead, holder }: PlaceInLine) => told.push([ahead, holder?.mode]);
    track(semaphore(b).acquire({ waitMs: Infinity, onWait }));
    track(b.locks.acquire(['x', 'y'], { waitMs: Infinity, onWait }));
    await world.clock.advance(SHORT_MS);
    expect(told).toEqual([
      [0, 'semaphore'],
      [0, 'exclusive'],
    ]);
  });

  it('is refused with retry: a call that polls has no place in line', async () => {
    const error = await rejection(
      a.locks.acquire('stock', { onWait: () => {}, retry: fixedInterval({ intervalMs: 10 }) }),
    );
    expect(error).toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'onWait' });
    expect(error.message).toContain('onWait cannot be used with retry');
  });
});
