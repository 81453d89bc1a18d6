import { AlwaysOffSampler, ParentBasedSampler } from '@opentelemetry/sdk-trace-base';
import { LockWorld } from '../../../support/world/lock-world.js';
import { type SeenSpan, TracedWorld, useAsyncContexts } from '../../../support/world/traced-world.js';

useAsyncContexts();

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

describe('a call that has waited', () => {
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
