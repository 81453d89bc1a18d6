import { openTelemetry } from 'nestjs-redis-lock/telemetry';
import { LockWorld } from '../../../support/world/lock-world.js';
import { failing } from '../../../support/world/scripted-store.js';
import { TracedWorld, useAsyncContexts } from '../../../support/world/traced-world.js';

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

describe('renewals', () => {
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
