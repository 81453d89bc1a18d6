import { LockTimeoutError } from '../../../../lib/kernel/api/errors.js';
import { LockWorld } from '../../../support/world/lock-world.js';
import { TracedWorld, useAsyncContexts } from '../../../support/world/traced-world.js';

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
