import { AsyncLocalStorage } from 'node:async_hooks';
import { LockUnavailableError } from '../../../lib/core/api/errors.js';
import { LeaseLostError } from '../../../lib/core/api/lease-errors.js';
import type { LockHoldTrace } from '../../../lib/core/tracing/contexts.js';
import { ChannelRecorder } from '../../support/world/channel-recorder.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, lostOnTheWay } from '../../support/world/scripted-store.js';

const BEGUN = ['start', 'end'];
const ENDED = [...BEGUN, 'asyncStart', 'asyncEnd'];
const ENDED_BADLY = [...BEGUN, 'error', 'asyncStart', 'asyncEnd'];

describe('the channel nestjs-redis-lock:hold', () => {
  const request = new AsyncLocalStorage<string>();
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let stores: (string | undefined)[];
  let recorder: ChannelRecorder<LockHoldTrace>;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
    stores = [];
    recorder = new ChannelRecorder('nestjs-redis-lock:hold', () => stores.push(request.getStore()));
  });
  afterEach(() => recorder.close());

  const ends = (): LockHoldTrace[] => recorder.said('asyncEnd');

  it('lasts from the grant to the release', async () => {
    const lease = await a.locks.acquire('order:7');
    expect(recorder.sequences).toEqual([BEGUN]);
    const begun = { service: 'default', resource: 'order:7', mode: 'exclusive', waitedMs: 0 };
    expect(recorder.said('start')).toMatchObject([
      { ...begun, fencingToken: lease.fencingToken, outcome: undefined, heldMs: undefined },
    ]);
    await world.clock.advance(40);
    await lease.release();
    await lease.release();
    expect(recorder.sequences).toEqual([ENDED]);
    expect(ends()).toMatchObject([{ outcome: 'released', heldMs: 40, reason: undefined, error: undefined }]);
    expect(Object.isFrozen(recorder.messages[0]!.context)).toBe(true);
  });

  it('begins anew for each lease that is handed over in memory, with its own token', async () => {
    const first = await a.locks.acquire('order:7');
    const second = a.locks.acquire('order:7');
    await world.clock.advance(5);
    await first.release();
    await (await second).release();
    expect(a.store.sent('release')).toHaveLength(1);
    expect(ends()).toMatchObject([
      { fencingToken: first.fencingToken, waitedMs: 0, heldMs: 5, outcome: 'released' },
      { fencingToken: first.fencingToken + 1, waitedMs: 5, heldMs: 0, outcome: 'released' },
    ]);
    expect(recorder.messages.map(({ event, said }) => `${event} ${said.fencingToken - first.fencingToken}`)).toEqual([
      ...BEGUN.map((event) => `${event} 0`),
      'asyncStart 0',
      'asyncEnd 0',
      ...BEGUN.map((event) => `${event} 1`),
      'asyncStart 1',
      'asyncEnd 1',
    ]);
  });

  it('has one hold for all entries of a context', async () => {
    const options = { mode: 'reentrant' } as const;
    await a.locks.using('order:7', options, () => a.locks.using('order:7', options, () => {}));
    expect(recorder.sequences).toEqual([ENDED]);
  });

  it('has one hold for each resource of a call for several, and for the permits of a semaphore', async () => {
    await a.locks.using(['order:8', 'order:7'], undefined, () => {});
    await a.locks.semaphore('exports', { permits: 3 }).using({ count: 2 }, () => {});
    expect(ends().map(({ resource, mode }) => [resource, mode])).toEqual([
      ['order:8', 'exclusive'],
      ['order:7', 'exclusive'],
      ['exports', 'semaphore'],
    ]);
  });

  it('ends when the lease is lost, with the reason', async () => {
    const lease = await a.locks.acquire('order:7', { leaseMs: 1_000 });
    a.store.fates.renew = lostOnTheWay;
    await world.clock.advance(1_000);
    expect(recorder.sequences).toEqual([ENDED_BADLY]);
    const [end] = ends();
    expect(end).toMatchObject({ outcome: 'lost', reason: 'notRenewed', error: expect.any(LeaseLostError) });
    expect(end!.heldMs).toBeCloseTo(988);
    await lease.release();
    expect(ends()).toHaveLength(1);
  });

  it('says that the lease was lost where only its release finds it out', async () => {
    const lease = await a.locks.acquire('order:7');
    await b.locks.operators.forceRelease('order:7', { fencingToken: lease.fencingToken });
    await lease.release();
    expect(ends()).toMatchObject([{ outcome: 'lost', reason: 'takenOver' }]);
  });

  it('says that it was released where Redis has not confirmed it', async () => {
    const lease = await a.locks.acquire('order:7');
    a.store.fates.release = failing('unknown');
    await expect(lease.release()).rejects.toThrow(LockUnavailableError);
    expect(ends()).toMatchObject([{ outcome: 'released', error: expect.any(LockUnavailableError) }]);
  });

  it('ends with the transfer, and begins anew where the lease is adopted', async () => {
    const lease = await a.locks.acquire('order:7');
    await world.clock.advance(10);
    const text = await lease.transfer();
    expect(ends()).toMatchObject([{ outcome: 'transferred', heldMs: 10 }]);
    const adopted = await b.locks.adopt(text);
    await adopted.release();
    expect(ends()[1]).toMatchObject({ outcome: 'released', fencingToken: lease.fencingToken });
  });

  it('publishes in the async context of the call that acquired it, and of the one that releases it', async () => {
    const lease = await request.run('one', () => a.locks.acquire('order:7'));
    const waiting = request.run('two', () => a.locks.acquire('order:7'));
    await request.run('three', () => lease.release());
    const second = await waiting;
    await second.release();
    expect(stores).toEqual(['one', 'one', 'three', 'three', 'two', 'two', undefined, undefined]);
  });

  it('publishes a loss in the context of the holder, and not in that of the request that finds it out', async () => {
    const read = { mode: 'read' } as const;
    const one = await request.run('one', () => a.locks.acquire('order:7', read));
    const two = await request.run('two', () => a.locks.acquire('order:7', read));
    a.store.fates.verify = () => Promise.resolve(false as never);
    await request.run('two', () => two.verify());
    expect(one.isHeld()).toBe(false);
    expect(stores).toEqual([
      ...BEGUN.map(() => 'one'),
      ...BEGUN.map(() => 'two'),
      'one',
      'one',
      'one',
      'two',
      'two',
      'two',
    ]);
  });

  it('ignores leases that began before a subscriber came', async () => {
    recorder.close();
    const lease = await a.locks.acquire('order:7');
    recorder = new ChannelRecorder('nestjs-redis-lock:hold');
    await lease.release();
    expect(recorder.messages).toEqual([]);
  });
});
