import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import {
  LockAbortedError,
  LockBusyError,
  LockShutdownError,
  LockTimeoutError,
  LockUnavailableError,
} from '../../../lib/core/api/errors.js';
import { LeaseLostError, LockReentryError } from '../../../lib/core/api/lease-errors.js';
import { fixedInterval } from '../../../lib/core/api/retry.js';
import type { LockAcquireTrace } from '../../../lib/core/tracing/contexts.js';
import { TransactionScope } from '../../../lib/nest/transactions/transaction-scope.js';
import { gate, track } from '../../support/expect/tracked.js';
import { ChannelRecorder } from '../../support/world/channel-recorder.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing } from '../../support/world/scripted-store.js';

const SUCCESS = ['start', 'end', 'asyncStart', 'asyncEnd'];
const FAILURE = ['start', 'end', 'error', 'asyncStart', 'asyncEnd'];

describe('the channel nestjs-redis-lock:acquire', () => {
  const request = new AsyncLocalStorage<string>();
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let stores: (string | undefined)[];
  let recorder: ChannelRecorder<LockAcquireTrace>;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a', { service: 'orders' });
    b = world.instance('b');
    stores = [];
    recorder = new ChannelRecorder('nestjs-redis-lock:acquire', () => stores.push(request.getStore()));
  });
  afterEach(() => recorder.close());

  const ends = (): LockAcquireTrace[] => recorder.said('asyncEnd');

  it('publishes a call that gets its lock at once', async () => {
    const lease = await a.locks.acquire('order:7');
    expect(recorder.sequences).toEqual([SUCCESS]);
    const common = { service: 'orders', resource: 'order:7', mode: 'exclusive', group: 'order', entry: 'call' };
    const [started] = recorder.said('start');
    expect(started).toMatchObject({ ...common, outcome: undefined, fencingToken: undefined, waitedMs: undefined });
    const granted = { outcome: 'acquired', fencingToken: lease.fencingToken, waitedMs: 0, attempts: 1 };
    expect(ends()).toEqual([expect.objectContaining({ ...common, ...granted, queuedAfterMs: undefined })]);
  });

  it('publishes one frozen object for all messages of a call', async () => {
    await a.locks.acquire('order:7');
    const contexts = new Set(recorder.messages.map(({ context }) => context));
    expect(contexts.size).toBe(1);
    const [context] = contexts as Set<{ -readonly [Name in keyof LockAcquireTrace]: LockAcquireTrace[Name] }>;
    expect(Object.isFrozen(context)).toBe(true);
    expect(() => (context!.outcome = 'busy')).toThrow(TypeError);
    expect(JSON.parse(JSON.stringify(context))).toMatchObject({ resource: 'order:7', outcome: 'acquired' });
    expect(inspect(context)).toContain("outcome: 'acquired'");
  });

  it('says when a call was queued and how long it waited', async () => {
    const holder = await b.locks.acquire('order:7');
    const waiting = a.locks.acquire('order:7');
    await settle();
    expect(recorder.messages.at(-1)!.context).toMatchObject({ outcome: undefined });
    await world.clock.advance(300);
    await holder.release();
    await waiting;
    expect(ends()[1]).toMatchObject({ queuedAfterMs: 0, waitedMs: 300, outcome: 'acquired' });
  });

  it('says the same of a call that waits behind another call of its process', async () => {
    const holder = await a.locks.acquire('order:7');
    const waiting = a.locks.acquire('order:7');
    await world.clock.advance(3);
    await holder.release();
    await waiting;
    const waited = { queuedAfterMs: 0, waitedMs: 3, attempts: 0, handedOn: true };
    expect(ends()[1]).toMatchObject({ ...waited, outcome: 'acquired' });
  });

  it('publishes each resource of a call for several', async () => {
    const holder = await b.locks.acquire('order:8');
    const both = a.locks.acquire(['order:8', 'order:7']);
    await world.clock.advance(20);
    await holder.release();
    const lease = await both;
    expect(ends().slice(1)).toMatchObject([
      { resource: 'order:7', waitedMs: 0, fencingToken: lease.fencingTokenOf('order:7') },
      { resource: 'order:8', waitedMs: 20, fencingToken: lease.fencingTokenOf('order:8') },
    ]);
  });

  it('publishes a call that is refused because the resource is busy', async () => {
    await b.locks.acquire('order:7');
    await expect(a.locks.tryAcquire('order:7')).resolves.toBeNull();
    expect(recorder.sequences[1]).toEqual(FAILURE);
    expect(ends()[1]).toMatchObject({ outcome: 'busy', attempts: 1, error: expect.any(LockBusyError) });
  });

  it('publishes a call that waited in vain', async () => {
    await b.locks.acquire('order:7');
    const waiting = track(a.locks.using('order:7', { waitMs: 500 }, () => {}));
    await world.clock.advance(500);
    expect(waiting.error).toBeInstanceOf(LockTimeoutError);
    expect(ends()[1]).toMatchObject({ outcome: 'timeout', waitedMs: 500, error: expect.any(LockTimeoutError) });
  });

  it.each(['acquire', 'using', 'tryUsing'] as const)('publishes a call of %s that polls', async (method) => {
    const holder = await b.locks.acquire('order:7');
    const options = { waitMs: 1_000, retry: fixedInterval({ intervalMs: 100 }) };
    const call =
      method === 'acquire' ? a.locks.acquire('order:7', options) : a.locks[method]('order:7', options, () => {});
    await world.clock.advance(10);
    await holder.release();
    await world.clock.advance(300);
    await call;
    expect(ends()[1]).toMatchObject({ queuedAfterMs: 0, outcome: 'acquired', attempts: 2 });
  });

  it('publishes the outcome of an outage, of an abort and of a shutdown', async () => {
    a.store.fates.acquire = failing('refused', 'NOPERM');
    await expect(a.locks.acquire('order:7')).rejects.toThrow(LockUnavailableError);
    const signal = AbortSignal.abort();
    await expect(b.locks.acquire('order:7', { signal })).rejects.toThrow(LockAbortedError);
    const closed = b.locks.shutdown(0);
    await expect(b.locks.acquire('order:7')).rejects.toThrow(LockShutdownError);
    await world.clock.advance(1_000);
    await closed;
    expect(ends().map(({ outcome }) => outcome)).toEqual(['unavailable', 'aborted', 'shutdown']);
  });

  it('publishes a re-entry, and one that is refused', async () => {
    await a.locks.using('order:7', { mode: 'reentrant' }, async (lease) => {
      await a.locks.using('order:7', { mode: 'reentrant' }, () => {});
      const same = { resource: 'order:7', outcome: 'acquired', fencingToken: lease.fencingToken };
      expect(ends()).toMatchObject([
        { ...same, entry: 'call' },
        { ...same, entry: 'reentry' },
      ]);
      await expect(a.locks.acquire(['order:7', 'order:8'])).rejects.toThrow(LockReentryError);
    });
    expect(ends().at(-1)).toMatchObject({ entry: 'reentry', resource: 'order:7', outcome: 'refused' });
    expect(recorder.sequences.at(-1)).toEqual(FAILURE);
  });

  it('publishes a semaphore, also one whose permits the caller holds already', async () => {
    const semaphore = a.locks.semaphore('exports', { permits: 1 });
    await semaphore.using(async () => {
      await expect(semaphore.acquire()).rejects.toThrow(LockReentryError);
    });
    expect(ends()).toMatchObject([
      { mode: 'semaphore', outcome: 'acquired' },
      { mode: 'semaphore', outcome: 'refused' },
    ]);
    expect(recorder.sequences[1]).toEqual(FAILURE);
  });

  it('publishes an adoption, also one that fails', async () => {
    const text = await (await a.locks.acquire('order:7')).transfer();
    const adopted = await b.locks.adopt(text);
    await expect(a.locks.adopt(text)).rejects.toThrow(LeaseLostError);
    expect(ends().slice(1)).toMatchObject([
      { entry: 'adoption', group: 'order', outcome: 'acquired', fencingToken: adopted.fencingToken, attempts: 1 },
      { entry: 'adoption', outcome: 'refused', error: expect.any(LeaseLostError) },
    ]);
  });

  it('publishes the candidate of a leadership', async () => {
    const leadership = a.locks.campaign('mailer');
    await leadership.whenElected();
    expect(ends()).toMatchObject([{ resource: 'leader:mailer', entry: 'call', outcome: 'acquired' }]);
    await leadership.resign();
  });

  it('publishes a lease that the transaction has kept', async () => {
    const scope = new TransactionScope();
    const shop = world.instance('shop', { transactions: scope });
    await scope.run(async () => {
      await shop.locks.using('order:7', undefined, () => {});
      await shop.locks.using('order:7', undefined, () => {});
    });
    expect(ends().map(({ entry, outcome }) => [entry, outcome])).toEqual([
      ['call', 'acquired'],
      ['transaction', 'acquired'],
    ]);
  });

  it('publishes in the async context of the call, also where another request releases the lock', async () => {
    const holder = await request.run('one', () => a.locks.acquire('order:7'));
    const waiting = request.run('two', () => a.locks.acquire('order:7'));
    await request.run('three', () => holder.release());
    await waiting;
    expect(stores).toEqual([...SUCCESS.map(() => 'one'), 'two', 'two', 'two', 'two']);
  });

  it('runs the call in a store that a subscriber binds, but not what comes after it', async () => {
    const span = new AsyncLocalStorage<string>();
    const channel = tracingChannel('nestjs-redis-lock:acquire');
    channel.start.bindStore(span, () => 'acquire');
    let during: string | undefined;
    a.store.fates.acquire = (execute) => {
      during = span.getStore();
      return execute();
    };
    const later = gate();
    const lease = await a.locks.acquire('order:7', { watchdog: false, leaseMs: 1_000 });
    let atLoss: string | undefined = 'never';
    lease.signal.addEventListener('abort', () => {
      atLoss = span.getStore();
      later.open();
    });
    await world.clock.advance(1_000);
    await later.opened;
    channel.start.unbindStore(span);
    expect([during, span.getStore(), atLoss]).toEqual(['acquire', undefined, undefined]);
  });

  it('leaves a rejection that the caller handles alone, and never makes a second one', async () => {
    const unhandled: unknown[] = [];
    const listener = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', listener);
    await b.locks.acquire('order:7');
    // As without a subscriber: a call whose result the program ignores is no unhandled rejection.
    void a.locks.acquire('order:7', { waitMs: 0 });
    await expect(a.locks.acquire('order:7', { waitMs: 0 })).rejects.toThrow(LockBusyError);
    await settle();
    process.off('unhandledRejection', listener);
    expect(unhandled).toEqual([]);
  });
});
