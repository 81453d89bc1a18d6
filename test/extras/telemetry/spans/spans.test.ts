import { jest } from '@jest/globals';
import { isSpanContextValid, ProxyTracer, trace } from '@opentelemetry/api';
import { AlwaysOffSampler, ParentBasedSampler } from '@opentelemetry/sdk-trace-base';
import { openTelemetry } from 'nestjs-redis-lock/telemetry';
import { spanTelemetry } from '../../../../lib/extras/telemetry/open-telemetry/open-telemetry.js';
import { WaitedFor } from '../../../../lib/extras/telemetry/spans/call-span.js';
import { formatTraceparent, parseTraceparent } from '../../../../lib/extras/telemetry/spans/names.js';
import { TransactionScope } from '../../../../lib/features/transactions/nest/transaction-scope.js';
import { LockTimeoutError } from '../../../../lib/kernel/api/busy-errors.js';
import type { Holder } from '../../../../lib/kernel/api/holder.js';
import { GROUP } from '../../../../lib/kernel/api/resource.js';
import type { LockTracer } from '../../../../lib/kernel/events/lock-tracer.js';
import type { LockTelemetry } from '../../../../lib/kernel/events/telemetry.js';
import { rejection } from '../../../support/expect/eventually.js';
import { fitting, HOSTILE_TEXTS, textsIn, unsafeIn } from '../../../support/expect/hostile-texts.js';
import { claimsOn } from '../../../support/world/forgetful.js';
import { LockWorld } from '../../../support/world/lock-world.js';
import { failing } from '../../../support/world/scripted-store.js';
import { type SeenSpan, TracedWorld, useAsyncContexts } from '../../../support/world/traced-world.js';

describe('spans of a lease', () => {
  useAsyncContexts();

  const start = (options = {}) => {
    const world = new LockWorld();
    const traces = new TracedWorld();
    const { locks, store } = world.instance('shop-1', { telemetry: [traces.telemetry], service: 'shop', ...options });
    return { world, traces, locks, store };
  };

  describe('using', () => {
    it('the work is below the hold, which is beside the acquisition', async () => {
      const { traces, locks } = start();
      await traces.request('GET /', async () => {
        await locks.using('order:7', {}, () => traces.request('charge', async () => {}));
      });
      expect(traces.names).toEqual(['acquire order', 'charge', 'hold order', 'GET /']);
      expect(traces.above(traces.span('charge'))).toEqual(['hold order', 'GET /']);
      expect(traces.above(traces.span('acquire order'))).toEqual(['GET /']);
    });

    it('says what, how, and how it ended', async () => {
      const { traces, locks, world } = start();
      await locks.using('order:7', {}, () => world.clock.advance(1_500));
      const lock = {
        'lock.service': 'shop',
        'lock.group': 'order',
        'lock.mode': 'exclusive',
        'lock.resource': 'order:7',
      };
      const token = traces.span('hold order').attributes['lock.fencing_token'];
      expect(token).toBeGreaterThan(0);
      expect(traces.span('acquire order')).toMatchObject({
        attributes: {
          ...lock,
          'lock.fencing_token': token,
          'lock.attempts': 1,
          'lock.wait_time': 0,
          'lock.outcome': 'acquired',
        },
        events: [{ name: 'granted', attributes: { 'lock.fencing_token': token } }],
        links: [],
        status: 'unset',
      });
      expect(traces.span('hold order')).toMatchObject({
        attributes: { ...lock, 'lock.fencing_token': token, 'lock.hold_time': 1.5, 'lock.outcome': 'released' },
        status: 'unset',
      });
    });

    it('without a span around it, all of it is one trace all the same', async () => {
      const { traces, locks } = start();
      await locks.using('order:7', {}, () => traces.request('charge', async () => {}));
      expect(traces.above(traces.span('charge'))).toEqual(['hold order', 'acquire order']);
    });

    it('the work that fails ends the hold, which has not failed', async () => {
      const { traces, locks } = start();
      const work = locks.using('order:7', {}, () => Promise.reject(new Error('card refused')));
      await expect(work).rejects.toThrow('card refused');
      expect(traces.span('hold order')).toMatchObject({ attributes: { 'lock.outcome': 'released' }, status: 'unset' });
    });
  });

  describe('acquire', () => {
    it('has a hold that ends with the release', async () => {
      const { traces, locks } = start();
      const lease = await locks.acquire('order:7');
      expect(traces.names).toEqual(['acquire order']);
      await lease.release();
      expect(traces.names).toEqual(['acquire order', 'hold order']);
    });

    it('a call that times out has failed', async () => {
      const { traces, locks, world } = start();
      await world.instance('shop-2').locks.acquire('order:7');
      const call = locks.acquire('order:7', { waitMs: 3_000 });
      call.catch(() => {});
      await world.clock.advance(3_000);
      await expect(call).rejects.toThrow(LockTimeoutError);
      expect(traces.span('acquire order')).toMatchObject({
        attributes: { 'lock.outcome': 'timeout', 'error.type': 'LOCK_TIMEOUT', 'lock.holder.instance': 'shop-2' },
        events: [{ name: 'queued' }],
        status: 'error',
      });
    });
  });

  describe('a lease that is lost', () => {
    it('is a failed hold, with the reason', async () => {
      const { traces, locks, world } = start();
      const lease = await locks.acquire('order:7', { maxHoldMs: 1_000 });
      await world.clock.advance(1_000);
      expect(lease.isHeld()).toBe(false);
      expect(traces.span('hold order')).toMatchObject({
        attributes: { 'lock.outcome': 'lost', 'error.type': 'LEASE_LOST', 'lock.hold_time': 1 },
        status: 'error',
      });
    });
  });

  describe('a call that waits for another one of its process', () => {
    it('is queued, then granted; its hold is below its own caller, not below the one that released', async () => {
      const { traces, locks, world } = start();
      const first = await traces.request('GET /first', () => locks.acquire('order:7'));
      const second = traces.request('GET /second', () =>
        locks.using('order:7', {}, () => traces.request('charge', async () => {})),
      );
      await world.clock.advance(700);
      await traces.request('DELETE /first', () => first.release());
      await second;
      const acquired = traces.spans.filter(({ name }) => name === 'acquire order')[1]!;
      expect(acquired.events.map(({ name }) => name)).toEqual(['queued', 'granted']);
      expect(acquired.attributes['lock.wait_time']).toBe(0.7);
      expect(traces.above(traces.span('charge'))).toEqual(['hold order', 'GET /second']);
    });
  });
});

describe('each way to lock', () => {
  useAsyncContexts();

  const start = (options = {}, traces = new TracedWorld()) => {
    const world = new LockWorld();
    const { locks } = world.instance('shop-1', { telemetry: [traces.telemetry], ...options });
    return { world, traces, locks };
  };

  const TICK = { job: 'nightly', tick: 't1', overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock: {} } as const;

  describe('every way into a lock', () => {
    it('several resources: each hold is below the one before, and the work below the last', async () => {
      const { traces, locks } = start();
      await traces.request('GET /', () =>
        locks.using(['order:7', 'stock:3'], {}, () => traces.request('charge', async () => {})),
      );
      expect(traces.above(traces.span('charge'))).toEqual(['hold stock', 'hold order', 'GET /']);
      expect(traces.above(traces.span('acquire stock'))).toEqual(['hold order', 'GET /']);
      expect(traces.names).toHaveLength(6);
    });

    it('a re-entry creates no span: its work stays below the current one', async () => {
      const { traces, locks } = start();
      const again = (): Promise<void> =>
        locks.using('order:7', { mode: 'reentrant' }, () => traces.request('inner', async () => {}));
      await locks.using('order:7', { mode: 'reentrant' }, () => traces.request('outer', again));
      expect(traces.above(traces.span('inner'))).toEqual(['outer', 'hold order', 'acquire order']);
      expect(traces.names).toEqual(['acquire order', 'inner', 'outer', 'hold order']);
    });

    it('readers that share a lease each have a hold of their own', async () => {
      const { traces, locks } = start();
      const read = (name: string): Promise<void> =>
        traces.request(name, () =>
          locks.using('order:7', { mode: 'read' }, () => traces.request(`${name} work`, async () => {})),
        );
      await Promise.all([read('a'), read('b')]);
      expect(traces.above(traces.span('a work'))).toEqual(['hold order', 'a']);
      expect(traces.above(traces.span('b work'))).toEqual(['hold order', 'b']);
    });

    it('a transaction keeps the hold, and a later call under it is not a second one', async () => {
      const scope = new TransactionScope();
      const { traces, locks } = start({ transactions: scope });
      await scope.run(async () => {
        await locks.using('order:7', {}, () => traces.request('first', async () => {}));
        await traces.request('later', () => locks.using('order:7', {}, () => traces.request('second', async () => {})));
        expect(traces.names).not.toContain('hold order');
      });
      expect(traces.above(traces.span('first'))).toEqual(['hold order', 'acquire order']);
      expect(traces.above(traces.span('second'))).toEqual(['later']);
      expect(traces.names.filter((name) => name === 'hold order')).toHaveLength(1);
    });

    it('a leadership has no spans: it lasts for days', async () => {
      const { traces, locks, world } = start();
      const leadership = locks.campaign('billing');
      await world.clock.advance(100);
      expect(leadership.isLeader()).toBe(true);
      await leadership.run(() => traces.request('bill', async () => {}));
      await leadership.resign();
      expect(traces.names).toEqual(['bill']);
      expect(traces.span('bill').parent).toBeUndefined();
    });
  });

  describe('a run of a job', () => {
    const startJob = () => {
      const started = start();
      const { locks, world } = started;
      return { ...started, runs: locks.jobs.runs(claimsOn(world.server)) };
    };

    it('is a new root with a link to what has called it, and has the hold and the work below it', async () => {
      const { traces, runs } = startJob();
      await traces.request('timer', () => runs.run(TICK, () => traces.request('report', async () => {})));
      const [tick, timer] = [traces.span('tick nightly'), traces.span('timer')];
      expect(tick.parent).toBeUndefined();
      expect(tick.trace).not.toBe(timer.trace);
      expect(tick.links.map(({ trace }) => trace)).toEqual([timer.trace]);
      expect(tick.attributes).toMatchObject({ 'lock.job': 'nightly', 'lock.tick': 't1', 'lock.outcome': 'ok' });
      expect(traces.above(traces.span('report'))).toEqual([expect.stringMatching(/^hold /), 'tick nightly']);
    });

    it('that fails is a failed tick, and its hold is not', async () => {
      const { traces, runs } = startJob();
      const run = runs.run(TICK, () => Promise.reject(new RangeError('no disk')));
      await expect(run).rejects.toThrow('no disk');
      expect(traces.span('tick nightly')).toMatchObject({
        attributes: { 'lock.outcome': 'error', 'error.type': 'RangeError' },
        links: [],
        status: 'error',
      });
      expect(traces.spans.find(({ name }) => name.startsWith('hold'))!.status).toBe('unset');
    });
  });

  describe('a trace that is not recorded', () => {
    it('has no spans, and the work knows it', async () => {
      const { traces, locks } = start({}, new TracedWorld(new ParentBasedSampler({ root: new AlwaysOffSampler() })));
      const inside = await traces.request('GET /', (span) =>
        locks.using('order:7', {}, async () => trace.getActiveSpan() === span),
      );
      expect(inside).toBe(true);
      expect(traces.spans).toEqual([]);
    });

    it('without a request around it, the work is below a span that is not recorded', async () => {
      const { traces, locks } = start({}, new TracedWorld(new ParentBasedSampler({ root: new AlwaysOffSampler() })));
      const span = await locks.using('order:7', {}, async () => trace.getActiveSpan());
      expect(span && isSpanContextValid(span.spanContext())).toBe(true);
      expect(span?.isRecording()).toBe(false);
      expect(traces.spans).toEqual([]);
    });
  });

  describe('a tracer that throws', () => {
    const fail = (): never => {
      throw new Error('tracer is broken');
    };
    const tracing = (tracer: Partial<LockTracer>): LockTelemetry => ({
      start: (source) => source.trace({ acquire: fail, tick: fail, ...tracer }),
    });
    const holdThat = (hold: object) =>
      tracing({
        acquire: () => ({
          traceparent: undefined,
          run: (ask) => ask(),
          waits: fail,
          granted: () => hold as never,
          failed: fail,
        }),
      });

    it.each([
      ['in each method', tracing({})],
      [
        'before it runs the call',
        tracing({ acquire: () => ({ traceparent: undefined, run: fail, waits: fail, granted: fail, failed: fail }) }),
      ],
      [
        'after it has run the call',
        tracing({
          acquire: () => ({
            traceparent: undefined,
            run: (ask) => void ask() as never,
            waits: fail,
            granted: fail,
            failed: fail,
          }),
        }),
      ],
      ['before it runs the work', holdThat({ run: fail, ended: fail })],
      ['after it has run the work', holdThat({ run: (work: () => unknown) => (work(), fail()), ended: fail })],
      ['by returning something else', holdThat({ run: () => 7, ended: fail })],
    ])('breaks no lock: %s', async (_, telemetry) => {
      const warnings: string[] = [];
      const { locks, world } = start({ telemetry: [telemetry], warn: (line: string) => warnings.push(line) });
      let runs = 0;
      const work = async (): Promise<number> => ++runs;
      expect(await locks.using('order:7', {}, work)).toBe(1);
      expect(await locks.using(['order:7', 'stock:3'], {}, work)).toBe(2);
      await expect(locks.using('order:7', {}, () => Promise.reject(new Error('work failed')))).rejects.toThrow(
        'work failed',
      );
      const runsOfJobs = locks.jobs.runs(claimsOn(world.server));
      expect(await runsOfJobs.run(TICK, work)).toBe(3);
      const lease = await locks.acquire('order:8');
      expect(await locks.tryAcquire('order:8')).toBeNull();
      await lease.release();
      expect(runs).toBe(3);
      expect(warnings.length).toBeLessThanOrEqual(1);
      expect(world.server.isEmpty).toBe(true);
    });
  });

  describe('without a tracer provider', () => {
    it('no call is followed, until an SDK registers one', async () => {
      const world = new LockWorld();
      const { locks } = world.instance('shop-1', { telemetry: [spanTelemetry()] });
      const startSpan = jest.spyOn(ProxyTracer.prototype, 'startSpan');
      await locks.using('order:7', {}, async () => {});
      expect(startSpan).not.toHaveBeenCalled();
      const traces = new TracedWorld();
      trace.setGlobalTracerProvider(traces.provider);
      await locks.using('order:7', {}, async () => {});
      expect(traces.names).toEqual(['acquire order', 'hold order']);
      trace.disable();
      startSpan.mockRestore();
    });
  });
});

describe('a call that has waited', () => {
  useAsyncContexts();

  const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

  let world: LockWorld;
  let traces: TracedWorld;
  beforeEach(() => {
    world = new LockWorld();
    traces = new TracedWorld();
  });

  const instance = (name: string) => world.instance(name, { telemetry: [traces.telemetry] }).locks;
  const traceOf = (name: string) => traces.span(name).trace;
  const acquiredIn = (request: string): SeenSpan =>
    traces.spans.find(({ name, trace }) => name.startsWith('acquire ') && trace === traceOf(request))!;
  const links = (request: string) => acquiredIn(request).links.map(({ trace }) => trace);

  it.each([
    ['of another instance', 'shop-2'],
    ['of the same instance', 'shop-1'],
  ])('links to the trace of the holder: %s', async (_, waiting) => {
    const first = instance('shop-1');
    const second = waiting === 'shop-1' ? first : instance(waiting);
    const lease = await traces.request('holder', () => first.acquire('order:7', { group: 'Report.run' }));
    const call = traces.request('waiter', () => second.using('order:7', {}, async () => {}));
    await world.clock.advance(2_500);
    await lease.release();
    await call;
    expect(links('waiter')).toEqual([traceOf('holder')]);
    expect(acquiredIn('waiter').links[0]!.attributes).toMatchObject({
      'lock.holder.group': 'Report.run',
      'lock.holder.instance': 'shop-1',
      'lock.holder.wait_time': 2.5,
    });
    expect(acquiredIn('waiter').attributes).toMatchObject({
      'lock.holder.group': 'Report.run',
      'lock.holder.wait_time': 2.5,
      'lock.wait_time': 2.5,
    });
    expect(links('holder')).toEqual([]);
  });

  it('links to it also if it was not granted', async () => {
    await traces.request('holder', () => instance('shop-1').acquire('order:7'));
    const call = traces.request('waiter', () => instance('shop-2').acquire('order:7', { waitMs: 1_000 }));
    call.catch(() => {});
    await world.clock.advance(1_000);
    await expect(call).rejects.toThrow('waited 1 s');
    expect(links('waiter')).toEqual([traceOf('holder')]);
  });

  it('names the slow holder, and not only the last of those that were passed the lock in memory', async () => {
    const locks = instance('shop-1');
    const work = (name: string, ms: number) =>
      traces.request(name, () =>
        locks.using('order:7', {}, () => new Promise<void>((done) => world.clock.setTimer(done, ms))),
      );
    const all = [work('quick', 10), work('slow', 3_000), work('next', 10), work('last', 0)];
    await world.clock.advance(4_000);
    await Promise.all(all);
    const [longest] = acquiredIn('last').links;
    expect(longest!.trace).toBe(traceOf('slow'));
    expect(longest!.attributes['lock.holder.wait_time']).toBeCloseTo(3, 1);
  });

  it('of a trace that is not recorded, nothing is stored', async () => {
    const unrecorded = new TracedWorld(new ParentBasedSampler({ root: new AlwaysOffSampler() }));
    const { locks } = world.instance('shop-3', { telemetry: [unrecorded.telemetry] });
    await unrecorded.request('holder', () => locks.acquire('order:7'));
    expect((await locks.inspect('order:7')).holders[0]!.label).toBeUndefined();
  });

  it('the label of the user stays', async () => {
    const locks = instance('shop-1');
    await locks.acquire('order:7', { label: { group: 'Mine', request: 7 } });
    const { label } = (await locks.inspect('order:7')).holders[0]!;
    expect(label).toMatchObject({ group: 'Mine', request: 7, traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-/) });
    const long = { request: 'x'.repeat(220) };
    await locks.acquire('order:8', { label: long });
    expect((await locks.inspect('order:8')).holders[0]!.label).toEqual(long);
  });

  it.each(['00-zz', `${TRACEPARENT}\n`, '<script>', '😀'.repeat(20)])(
    'ignores what is no traceparent: %j',
    async (traceparent) => {
      const { locks } = world.instance('neighbour');
      await locks.acquire('order:7', { label: { traceparent } });
      const call = traces.request('waiter', () => instance('shop-1').tryAcquire('order:7'));
      expect(await call).toBeNull();
      expect(links('waiter')).toEqual([]);
    },
  );
});

describe('a hostile name in a span', () => {
  useAsyncContexts();

  it.each(Object.entries(HOSTILE_TEXTS))('spans show nothing of %s as it is', async (_what, text) => {
    const world = new LockWorld();
    const traced = new TracedWorld();
    const { locks, store } = world.instance('a', { telemetry: [traced.telemetry], service: text });
    const neighbour = world.instance('b');
    // As a store of the user's own may call it.
    const acquire = store.acquire.bind(store);
    store.acquire = async (...asked) => {
      const reply = await acquire(...asked);
      if (!('seen' in reply) || !reply.seen) return reply;
      const holders = reply.seen.holders.map((holder) => ({ ...holder, instanceId: text.replaceAll('/', '') }));
      return Object.defineProperty(reply, 'seen', { value: { ...reply.seen, holders } });
    };
    const name = fitting(text, 500);
    const label = { group: fitting(text, 40), site: fitting(text, 20), traceparent: fitting(text, 20) };
    const held = await neighbour.locks.acquire(name, { label });
    const waiting = rejection(locks.acquire(name, { waitMs: 1_000 }));
    await world.clock.advance(1_000);
    await waiting;
    await held.release();
    await locks.using(name, undefined, () => {});
    const fail = () => Promise.reject(new Error(text));
    const run = { tick: fitting(text, 100), overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock: {} } as const;
    await rejection(locks.jobs.runs(claimsOn(world.server)).run({ ...run, job: name }, fail));

    const { spans } = traced;
    expect(spans.length).toBeGreaterThanOrEqual(4);
    for (const shown of spans.flatMap((span) => textsIn(span))) expect(unsafeIn(shown)).toBeUndefined();
    const [waited] = spans.filter(({ status }) => status === 'error');
    expect(waited!.attributes['lock.holder.group']).toMatch(GROUP);
  });
});

describe('the span of a lease that has leaked', () => {
  useAsyncContexts();

  /** Forgets values on request, in place of the garbage collector. */
  class FakeRegistry<T> {
    static readonly forget: (() => void)[] = [];

    constructor(private readonly collected: (held: T) => void) {}

    register(_handle: object, held: T): void {
      FakeRegistry.forget.push(() => this.collected(held));
    }

    unregister(): void {}
  }

  const { FinalizationRegistry: real } = globalThis;

  beforeEach(() => void (globalThis.FinalizationRegistry = FakeRegistry as never));
  afterEach(() => void (globalThis.FinalizationRegistry = real));

  it('ends as an error when the leak is found, and its later release changes nothing', async () => {
    const world = new LockWorld();
    const traces = new TracedWorld();
    const { locks } = world.instance('shop-1', { telemetry: [traces.telemetry] });
    const lease = await locks.withOrigin(
      () => {},
      (origin) => locks.acquire('order:7', {}, origin),
    );
    await world.clock.advance(700);
    expect(traces.names).toEqual(['acquire order']);
    for (const forget of FakeRegistry.forget.splice(0)) forget();
    expect(traces.span('hold order')).toMatchObject({
      attributes: { 'lock.outcome': 'leaked', 'lock.hold_time': 0.7 },
      status: 'error',
    });
    await lease.release();
    expect(traces.names).toEqual(['acquire order', 'hold order']);
  });
});

describe('renewals', () => {
  useAsyncContexts();

  const start = (renewalSpans?: boolean) => {
    const world = new LockWorld();
    const traces = new TracedWorld();
    const options = {
      tracerProvider: traces.provider,
      metrics: false,
      ...(renewalSpans !== undefined && { renewalSpans }),
    };
    const a = world.instance('shop-1', { telemetry: [openTelemetry(options)] });
    const renewals = () => traces.spans.filter(({ name }) => name.startsWith('renew'));
    return { world, traces, renewals, ...a };
  };
  const LEASE = { leaseMs: 3_000 };

  it.each([undefined, false])('are no spans unless asked for (%s)', async (renewalSpans) => {
    const { world, locks, traces, renewals } = start(renewalSpans);
    const lease = await locks.acquire('order:7', LEASE);
    await world.clock.advance(2_500);
    await lease.extend(5_000);
    await lease.release();
    expect(renewals()).toEqual([]);
    expect(traces.names).toEqual(['acquire order', 'hold order']);
  });

  it('of the watchdog are new traces, with a link to the hold', async () => {
    const { world, locks, traces, renewals } = start(true);
    await traces.request('GET /', () => locks.using('order:7', LEASE, () => world.clock.advance(2_500)));
    const hold = traces.span('hold order');
    expect(renewals()).toHaveLength(2);
    for (const { name, parent, trace, links, attributes, status } of renewals()) {
      expect({ name, parent, status }).toEqual({ name: 'renew order', parent: undefined, status: 'unset' });
      expect(trace).not.toBe(hold.trace);
      expect(links.map((link) => link.trace)).toEqual([hold.trace]);
      expect(attributes).toMatchObject({
        'lock.resource': 'order:7',
        'lock.fencing_token': hold.attributes['lock.fencing_token'],
        'lock.outcome': 'renewed',
      });
    }
  });

  it('that fail, or find the lock lost, say so', async () => {
    const { world, locks, store, renewals } = start(true);
    const lease = await locks.acquire('order:7', LEASE);
    store.next('renew', failing('unknown'));
    await world.clock.advance(1_000);
    await world.instance('shop-2').locks.operators.forceRelease('order:7', { fencingToken: lease.fencingToken });
    await world.clock.advance(1_000);
    expect(renewals().map(({ attributes, status }) => [attributes['lock.outcome'], status])).toEqual([
      ['failed', 'error'],
      ['lost', 'unset'],
    ]);
  });
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('parseTraceparent', () => {
  it('reads what another process has written', () => {
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      traceFlags: 1,
      isRemote: true,
    });
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-00`)?.traceFlags).toBe(0);
  });

  it('keeps no flag that it does not know', () => {
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-ff`)?.traceFlags).toBe(1);
  });

  it.each([
    ['nothing', undefined],
    ['a number', 1],
    ['an object that becomes the right text', { toString: () => `00-${TRACE}-${SPAN}-01`, length: 55 }],
    ['an empty text', ''],
    ['another version', `01-${TRACE}-${SPAN}-01`],
    ['upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['more behind it', `00-${TRACE}-${SPAN}-01-more`],
    ['a line break behind it', `00-${TRACE}-${SPAN}-01\n`],
    ['a line break in place of the last sign', `00-${TRACE}-${SPAN}-0\n`],
    ['no hexadecimal', `00-${TRACE.replace('a', 'g')}-${SPAN}-01`],
    ['digits of another script', `00-${TRACE}-${SPAN.replace('7', '٧')}-01`],
    ['HTML', `<script>${'a'.repeat(47)}`],
    ['a megabyte', `00-${TRACE}-${SPAN}-01`.repeat(20_000)],
  ])('ignores %s', (_, text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });
});

describe('formatTraceparent', () => {
  it('is read by parseTraceparent', () => {
    const text = formatTraceparent({ traceId: TRACE, spanId: SPAN, traceFlags: 1 });
    expect(text).toHaveLength(55);
    expect(parseTraceparent(text)).toMatchObject({ traceId: TRACE, spanId: SPAN });
  });

  it('is nothing for a trace that is not recorded', () => {
    expect(formatTraceparent({ traceId: TRACE, spanId: SPAN, traceFlags: 0 })).toBeUndefined();
  });
});

const holder = (fencingToken: number, heldMs: number, instanceId = 'shop-1'): Holder => ({
  instanceId,
  isThisProcess: false,
  mode: 'exclusive',
  fencingToken,
  ttlMs: 1_000,
  leaseMs: 30_000,
  depth: 1,
  heldMs,
});

const listed = (blockers: WaitedFor, now: number) =>
  blockers.end(now).map(({ holder: { fencingToken }, waitedMs }) => [fencingToken, waitedMs]);

it('a holder that was seen once counts for the whole time', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, 5_000)], 0);
  expect(listed(blockers, 300)).toEqual([[1, 300]]);
});

it('a holder that is seen again continues its time', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, 10)], 0);
  blockers.see([holder(1, 1_010)], 1_000);
  blockers.see([holder(1, 2_010)], 2_000);
  expect(listed(blockers, 2_500)).toEqual([[1, 2_500]]);
});

it('the next holder counts from its grant, and the previous one until then', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, 10)], 0);
  blockers.see([holder(2, 700)], 1_000);
  expect(listed(blockers, 1_500)).toEqual([
    [2, 1_200],
    [1, 300],
  ]);
});

it('a holder that had the lock before the call counts from the call', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, 60_000)], 400);
  expect(listed(blockers, 500)).toEqual([[1, 500]]);
});

it('readers that hold it together count each', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, 50), holder(2, 20, 'shop-2')], 0);
  expect(listed(blockers, 100)).toEqual([
    [1, 100],
    [2, 100],
  ]);
});

it('an answer that names no holder changes nothing', () => {
  const blockers = new WaitedFor();
  blockers.see([], 50);
  blockers.see([holder(1, 90)], 100);
  blockers.see([], 150);
  expect(listed(blockers, 200)).toEqual([[1, 190]]);
});

it('the eight longest of a thousand holders are named', () => {
  const blockers = new WaitedFor();
  for (let token = 1; token <= 1_000; token++) {
    const slow = token === 500 ? 5_000 : 0;
    blockers.see([holder(token, 1 + slow)], token * 10 + (token >= 500 ? 5_000 : 0));
  }
  const found = listed(blockers, 15_010);
  expect(found).toHaveLength(8);
  expect(found[0]![0]).toBe(500);
});

it('a wrong clock of another process adds no time', () => {
  const blockers = new WaitedFor();
  blockers.see([holder(1, -5_000)], 100);
  blockers.see([holder(2, Number.NaN)], 200);
  const sum = blockers.end(300).reduce((total, { waitedMs }) => total + waitedMs, 0);
  expect(sum).toBeLessThanOrEqual(300);
});
