import { AsyncLocalStorage } from 'node:async_hooks';
import { LockUnavailableError } from '../../../lib/core/api/errors.js';
import { LeaseLostError } from '../../../lib/core/api/lease-errors.js';
import type { SingletonRuns } from '../../../lib/core/singleton/singleton-runs.js';
import type { LockReleaseTrace, LockRenewTrace, LockTickTrace } from '../../../lib/core/tracing/contexts.js';
import { claimsOn } from '../../support/world/forgetful.js';
import { ChannelRecorder } from '../../support/world/channel-recorder.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing } from '../../support/world/scripted-store.js';

const SUCCESS = ['start', 'end', 'asyncStart', 'asyncEnd'];
const request = new AsyncLocalStorage<string>();

let world: LockWorld;
let a: Instance;
let b: Instance;
beforeEach(() => {
  world = new LockWorld();
  a = world.instance('a');
  b = world.instance('b');
});

function record<Context extends object>(channel: string) {
  const stores: (string | undefined)[] = [];
  const recorder = new ChannelRecorder<Context>(channel, () => stores.push(request.getStore()));
  recorders.push(recorder);
  return { recorder, stores, ends: () => recorder.said('asyncEnd') };
}
const recorders: { close(): void }[] = [];
afterEach(() => {
  for (const recorder of recorders.splice(0)) recorder.close();
});

describe('the channel nestjs-redis-lock:renew', () => {
  it('publishes each renewal of the watchdog, in the context of no call', async () => {
    const { recorder, stores, ends } = record<LockRenewTrace>('nestjs-redis-lock:renew');
    const lease = await request.run('one', () => a.locks.acquire('order:7', { leaseMs: 3_000 }));
    await request.run('two', () => world.clock.advance(2_500));
    expect(recorder.sequences).toEqual([SUCCESS, SUCCESS]);
    const common = { service: 'default', resource: 'order:7', group: 'order', fencingToken: lease.fencingToken };
    expect(ends()[0]).toMatchObject({ ...common, entry: 'watchdog', outcome: 'renewed', error: undefined });
    expect(new Set(stores)).toEqual(new Set([undefined]));
  });

  it('publishes renewals that fail, and one that finds the lock lost', async () => {
    const { ends } = record<LockRenewTrace>('nestjs-redis-lock:renew');
    const lease = await a.locks.acquire('order:7', { leaseMs: 3_000 });
    a.store.next('renew', failing('unknown'));
    await world.clock.advance(1_000);
    await b.locks.operators.forceRelease('order:7', { fencingToken: lease.fencingToken });
    await world.clock.advance(1_000);
    expect(ends().map(({ outcome }) => outcome)).toEqual(['failed', 'lost']);
    expect(ends()[0]!.error).toBeInstanceOf(Error);
  });

  it('publishes extend() in the context of the caller', async () => {
    const { stores, ends } = record<LockRenewTrace>('nestjs-redis-lock:renew');
    const lease = await a.locks.acquire('order:7');
    await request.run('one', () => lease.extend(5_000));
    expect(ends()).toMatchObject([{ entry: 'extend', outcome: 'renewed' }]);
    expect(stores).toEqual(SUCCESS.map(() => 'one'));
  });
});

describe('the channel nestjs-redis-lock:release', () => {
  it.each([false, true])('publishes a release (in the background: %s)', async (backgroundRelease) => {
    const { recorder, stores, ends } = record<LockReleaseTrace>('nestjs-redis-lock:release');
    const lease = await request.run('one', () => a.locks.acquire('order:7', { backgroundRelease }));
    await request.run('two', () => lease.release());
    await world.clock.advance(0);
    await lease.release();
    expect(recorder.sequences).toEqual([SUCCESS]);
    const common = { resource: 'order:7', group: 'order', entry: 'call', fencingToken: lease.fencingToken };
    expect(ends()).toMatchObject([{ ...common, outcome: 'released', inMemory: false }]);
    expect(stores).toEqual(SUCCESS.map(() => 'two'));
  });

  it('publishes a hand-over in memory, and the release of an inner entry', async () => {
    const { ends } = record<LockReleaseTrace>('nestjs-redis-lock:release');
    const lease = await a.locks.acquire('order:7');
    const next = a.locks.using('order:7', undefined, () => {});
    await lease.release();
    await next;
    const options = { mode: 'reentrant' } as const;
    await a.locks.using('order:8', options, () => a.locks.using('order:8', options, () => {}));
    expect(ends()).toMatchObject([
      { entry: 'call', outcome: 'released', inMemory: true },
      { entry: 'call', outcome: 'released', inMemory: false },
      { entry: 'reentry', outcome: 'released' },
      { entry: 'call', outcome: 'released' },
    ]);
  });

  it('publishes releases that are not confirmed, too late, or find the lock lost', async () => {
    const { ends } = record<LockReleaseTrace>('nestjs-redis-lock:release');
    const first = await a.locks.acquire('order:7');
    a.store.next('release', failing('unknown'));
    await expect(first.release()).rejects.toThrow(LockUnavailableError);
    const second = await a.locks.acquire('order:8');
    await b.locks.operators.forceRelease('order:8', { fencingToken: second.fencingToken });
    await second.release();
    const third = await a.locks.acquire('order:9', { watchdog: false, leaseMs: 100 });
    await world.clock.advance(100);
    await third.release();
    expect(ends().map(({ outcome }) => outcome)).toEqual(['failed', 'lost', 'afterLoss']);
    expect(ends()[0]!.error).toBeInstanceOf(LockUnavailableError);
  });
});

describe('the channel nestjs-redis-lock:tick', () => {
  const options = {
    job: 'nightly',
    tick: 'one',
    overlap: 'skip',
    onCrash: 'retry',
    keepMs: 120_000,
    lock: {},
  } as const;
  const runsOf = ({ locks }: Instance): SingletonRuns => locks.singletonRuns(claimsOn(world.server));

  it('publishes a tick that runs here, and one that another instance has claimed', async () => {
    const { recorder, ends } = record<LockTickTrace>('nestjs-redis-lock:tick');
    let token: number | undefined;
    await runsOf(a).run({ ...options, onCrash: 'skip' }, async (lease) => {
      token = lease.fencingToken;
      await world.clock.advance(30);
    });
    await runsOf(b).run({ ...options, onCrash: 'skip' }, () => {});
    const common = { service: 'default', group: 'nightly', job: 'nightly', tick: 'one' };
    expect(ends()).toMatchObject([
      { ...common, outcome: 'ok', ranMs: 30, rerun: false, fencingToken: token, reason: undefined },
      { ...common, outcome: 'skipped', reason: 'claimed', fencingToken: undefined },
    ]);
    expect(recorder.sequences).toEqual([SUCCESS, SUCCESS]);
  });

  it('publishes how a tick fails', async () => {
    const { ends } = record<LockTickTrace>('nestjs-redis-lock:tick');
    const broken = new Error('the work failed');
    await expect(runsOf(a).run(options, () => Promise.reject(broken))).rejects.toBe(broken);
    await a.locks.acquire('other');
    const lost = runsOf(a).run({ ...options, tick: 'two' }, async (lease) => {
      await b.locks.operators.forceRelease('cron:nightly', { fencingToken: lease.fencingToken });
      expect(await lease.verify()).toBe(false);
      lease.assertHeld();
    });
    await expect(lost).rejects.toThrow(LeaseLostError);
    expect(ends()).toMatchObject([
      { outcome: 'error', error: broken },
      { outcome: 'lost', error: expect.any(LeaseLostError) },
    ]);
  });

  it('has an acquisition and a hold of its lock', async () => {
    const acquires = record<{ entry: string; outcome: string }>('nestjs-redis-lock:acquire');
    const holds = record<{ resource: string; outcome: string }>('nestjs-redis-lock:hold');
    await runsOf(a).run(options, () => {});
    expect(acquires.ends()).toMatchObject([{ entry: 'tick', resource: 'cron:nightly', outcome: 'acquired' }]);
    expect(holds.ends()).toMatchObject([{ resource: 'cron:nightly', outcome: 'released' }]);
  });
});
