import { AlwaysOffSampler, ParentBasedSampler } from '@opentelemetry/sdk-trace-base';
import { jest } from '@jest/globals';
import { isSpanContextValid, ProxyTracer, trace } from '@opentelemetry/api';
import type { LockTelemetry } from '../../../../lib/kernel/events/telemetry.js';
import type { LockTracer } from '../../../../lib/kernel/events/lock-tracer.js';
import { claimsOn } from '../../../support/world/forgetful.js';
import { TransactionScope } from '../../../../lib/features/transactions/nest/transaction-scope.js';
import { spanTelemetry } from '../../../../lib/extras/telemetry/open-telemetry/open-telemetry.js';
import { LockWorld } from '../../../support/world/lock-world.js';
import { TracedWorld, useAsyncContexts } from '../../../support/world/traced-world.js';

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

  it('a re-entry makes no span: its work stays where it is', async () => {
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
