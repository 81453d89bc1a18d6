import { labelWithTrace } from '../../../lib/kernel/api/holder.js';
import type { CallTrace, LockTracer } from '../../../lib/kernel/events/lock-tracer.js';
import type { LockTelemetry } from '../../../lib/kernel/events/telemetry.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';

const traceparent = (number: number): string => `00-${String(number).padStart(32, '0')}-00f067aa0ba902b7-01`;

/** Gives each call a trace. */
class NumberingTracer implements LockTracer {
  isRecording = true;
  #calls = 0;

  acquire(): CallTrace {
    const number = ++this.#calls;
    return {
      traceparent: this.isRecording ? traceparent(number) : undefined,
      run: (ask) => ask(),
      waits: () => {},
      granted: () => undefined,
      failed: () => {},
    };
  }

  tick(): undefined {}
}

describe('the label of a traced call', () => {
  let world: LockWorld;
  let tracer: NumberingTracer;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    tracer = new NumberingTracer();
    const telemetry: LockTelemetry = { start: (source) => source.trace(tracer) };
    a = world.instance('a', { telemetry: [telemetry] });
    b = world.instance('b', { telemetry: [telemetry] });
  });

  const shown = async () => (await b.locks.inspect('order:7')).holders.map(({ label }) => label);

  it('names the trace and the group, besides the label of the call', async () => {
    const first = await a.locks.acquire('order:7');
    expect(await shown()).toEqual([{ group: 'order', traceparent: traceparent(1) }]);
    await first.release();
    const second = await a.locks.acquire('order:7', { label: { group: 'Orders.pay', request: '7f' } });
    expect(await shown()).toEqual([{ group: 'Orders.pay', request: '7f', traceparent: traceparent(2) }]);
    await second.release();
  });

  it('is not stored if the trace is not recorded', async () => {
    tracer.isRecording = false;
    const lease = await a.locks.acquire('order:7');
    expect(await shown()).toEqual([undefined]);
    await lease.release();
  });

  it('follows a handover in memory with an early renewal', async () => {
    const first = await a.locks.acquire('order:7');
    const waiting = a.locks.acquire('order:7');
    await first.release();
    const second = await waiting;
    expect(await shown()).toEqual([undefined]);
    await world.clock.advance(250);
    expect(await shown()).toEqual([{ group: 'order', traceparent: traceparent(2) }]);
    await second.release();
  });

  it('omits the group, and then the trace, if there is no room', () => {
    const trace = traceparent(1);
    const label = (bytes: number) => JSON.stringify({ text: 'x'.repeat(bytes - '{"text":""}'.length) });
    expect(labelWithTrace(label(256), 'order', trace)).toBe(label(256));
    expect(JSON.parse(labelWithTrace(label(180), 'order', trace)!)).not.toHaveProperty('group');
    expect(JSON.parse(labelWithTrace(label(180), 'order', trace)!)).toHaveProperty('traceparent', trace);
    expect(labelWithTrace(undefined, 'g', 'x'.repeat(300))).toBeUndefined();
    expect(labelWithTrace(JSON.stringify({ traceparent: trace }), 'g', 'x'.repeat(300))).toBeUndefined();
  });
});
