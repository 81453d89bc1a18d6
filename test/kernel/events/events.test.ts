import { LockAbortedError } from '../../../lib/kernel/api/errors.js';
import { OTHER_GROUP } from '../../../lib/kernel/api/holder.js';
import { LOCK_DEFAULTS } from '../../../lib/kernel/api/lock-options.js';
import type { LockEvent } from '../../../lib/kernel/events/events.js';
import { Groups, MAX_GROUPS, MAX_NAMES_OF_CODE, type RegisteredGroup } from '../../../lib/kernel/events/observers.js';
import type { LockTelemetry, LockTelemetrySource } from '../../../lib/kernel/events/telemetry.js';
import { track } from '../../support/expect/tracked.js';
import { EventCounts } from '../../support/simulation/event-counts.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { brokenAfter, failing, lostOnTheWay } from '../../support/world/scripted-store.js';

describe('the group of a resource', () => {
  it.each([
    ['order:7', 'order'],
    ['order:7:items', 'order'],
    ['заказ:7', 'заказ'],
    ['report', 'report'],
    ['nightly-report', 'nightly-report'],
    ['oauth2.refresh', 'oauth2.refresh'],
    ['отчёт', 'отчёт'],
    ['4711', OTHER_GROUP],
    ['user-4711', OTHER_GROUP],
    ['b1946ac9-2f3e-4a7c-9d55-0c1e7a1f6b3d', OTHER_GROUP],
    ['01ARZ3NDEKTSV4RRFFQ69G5FAV', OTHER_GROUP],
    ['Jane Doe', OTHER_GROUP],
    ['_unknown', OTHER_GROUP],
    ['x'.repeat(101), OTHER_GROUP],
    ['jane@example.org', OTHER_GROUP],
    ['jane@example.org:cart', OTHER_GROUP],
    [':7', OTHER_GROUP],
    ['<b>x</b>:7', OTHER_GROUP],
    ['a\u202eb:7', OTHER_GROUP],
    ['a\nb:7', OTHER_GROUP],
    [`${'😀'.repeat(20)}:7`, OTHER_GROUP],
    [`${'x'.repeat(101)}:7`, OTHER_GROUP],
  ])('%p is in %p', (resource, group) => {
    expect(new Groups().of(resource)).toBe(group);
  });

  it('is the result of the function of the user', () => {
    expect(new Groups((resource) => resource.split('/')[1]!).of('shop/order/7')).toBe('order');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no such table');
      },
      'threw "no such table"',
    ],
    ['returns nothing', () => undefined as never, 'undefined'],
    ['returns an empty text', () => '', '""'],
    ['returns a long text', () => 'x'.repeat(101), '"xxx'],
    ['returns HTML', () => '<script>', '"<script>"'],
    ['returns a text with a line break', () => 'a\nb', String.raw`"a\nb"`],
  ])('is _other if that %s, with one warning', (_, ofResource, shown) => {
    const lines: string[] = [];
    const groups = new Groups(ofResource, (line) => lines.push(line));
    expect([groups.of('a'), groups.of('b')]).toEqual([OTHER_GROUP, OTHER_GROUP]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('module option group');
    expect(lines[0]).toContain(shown);
  });

  it('is _other if that is async, whose error does not end the process', async () => {
    const lines: string[] = [];
    const ofResource = (): never => Promise.reject(new Error('no such table')) as never;
    expect(new Groups(ofResource, (line) => lines.push(line)).of('a')).toBe(OTHER_GROUP);
    // The test fails by a rejection that nothing handles.
    await new Promise(setImmediate);
    expect(lines).toHaveLength(1);
  });

  it('is one of 200: hostile keys cannot displace registered ones, before or after them', () => {
    const groups = new Groups();
    groups.register('method', 'Orders.pay');
    for (let i = 0; i < 10_000; i++) groups.of(`hostile${i}:x`);
    groups.register('job', 'nightly report');
    expect(groups.of('x', 'Orders.pay')).toBe('Orders.pay');
    expect(groups.of('x', 'nightly report')).toBe('nightly report');
    const seen = new Set(Array.from({ length: 10_000 }, (_, i) => groups.of(`hostile${i}:x`)));
    // One place was taken at boot, and one more name is for all others.
    expect(seen.size).toBe(MAX_GROUPS - 1 + 1);
    expect(seen).toContain(OTHER_GROUP);
    expect(groups.of('late:1')).toBe(OTHER_GROUP);
  });

  it('reserves room for names with a colon, if data produces names without one', () => {
    const groups = new Groups();
    groups.register('method', 'Orders.pay');
    const letters = (i: number) =>
      `user-${String.fromCharCode(
        ...String(i)
          .split('')
          .map((digit) => 97 + Number(digit)),
      )}`;
    const seen = new Set(Array.from({ length: 10_000 }, (_, i) => groups.of(letters(i))));
    expect(seen.size).toBe(MAX_NAMES_OF_CODE + 1);
    expect(seen).toContain(OTHER_GROUP);
    // Known groups keep their names, and so does a method.
    expect([groups.of(letters(0)), groups.of('Orders.pay')]).toEqual([letters(0), 'Orders.pay']);
    const prefixes = new Set(Array.from({ length: 1_000 }, (_, i) => groups.of(`kind${i}:7`)));
    expect(prefixes.size).toBe(MAX_GROUPS - 1 - MAX_NAMES_OF_CODE + 1);
  });

  it('keeps names free of characters that a terminal or a page would execute', () => {
    const groups = new Groups();
    groups.register('leadership', 'a<b>\u202e', 'exclusive', 'leader:a<b>\u202e');
    expect(groups.of('leader:a<b>\u202e', 'leader:a<b>\u202e')).toBe('leader:a_b__');
    const letters = '\u{1d49c}'.repeat(150);
    groups.register('job', letters);
    expect(groups.of('job:1', letters)).toBe('\u{1d49c}'.repeat(100));
  });

  it('is announced to a listener once, including earlier ones, until it leaves', () => {
    const groups = new Groups();
    const told: RegisteredGroup[] = [];
    groups.register('method', 'Orders.pay', 'write');
    const stop = groups.onRegistered((registered) => told.push(registered));
    groups.register('method', 'Orders.pay', 'write');
    groups.register('job', 'nightly');
    stop();
    groups.register('job', 'later');
    expect(told).toEqual([
      { kind: 'method', group: 'Orders.pay', mode: 'write', name: 'Orders.pay' },
      { kind: 'job', group: 'nightly', mode: 'exclusive', name: 'nightly' },
    ]);
  });
});

describe('events without a listener', () => {
  it('compute no group, except for a lost lease', async () => {
    const { LockWorld } = await import('../../support/world/lock-world.js');
    let asked = 0;
    const world = new LockWorld();
    const group = () => `g${asked++}`;
    const { locks } = world.instance('a', { observers: [], group });
    const lease = await locks.acquire('stock');
    const waiting = locks.acquire('stock');
    await lease.release();
    await (await waiting).release();
    await locks.acquire('stock', { watchdog: false, leaseMs: 100 });
    expect(asked).toBe(0);
    await world.clock.advance(1_000);
    expect(await locks.tryAcquire('stock')).not.toBeNull();
    // The error of the lost lease names its group, and the event that this instance counts.
    expect(asked).toBe(2);
  });
});

describe('observers', () => {
  let world: LockWorld;

  beforeEach(() => {
    world = new LockWorld();
  });

  it('that throw break nothing, and the others still get the event', async () => {
    const events: LockEvent[] = [];
    const bad = () => {
      throw new Error('observer');
    };
    const { locks, store } = world.instance('a', { observers: [bad, (event) => events.push(event)] });
    const lease = await locks.acquire('stock', { leaseMs: 3_000 });
    store.next('renew', failing('notExecuted'));
    await world.clock.advance(2_000);
    expect(lease.isHeld()).toBe(true);
    await lease.release();
    expect(events.map(({ type }) => type)).toEqual(['acquired', 'renewalFailed', 'renewalRecovered', 'released']);
    expect(world.server.isEmpty).toBe(true);
  });

  it('that reject are no unhandled rejection', async () => {
    const { locks } = world.instance('a', { observers: [() => Promise.reject(new Error('async observer'))] });
    const lease = await locks.acquire('stock');
    await lease.release();
    await settle(); // an unhandled rejection would end the process here
    expect(world.server.isEmpty).toBe(true);
  });

  it('that throw when a lease is lost do not keep its signal from aborting', async () => {
    const bad = () => {
      throw new Error('observer');
    };
    const { locks } = world.instance('a', { observers: [bad] });
    const lease = await locks.acquire('stock', { watchdog: false, leaseMs: 100 });
    const { signal } = lease;
    await world.clock.advance(100);
    expect(signal.aborted).toBe(true);
  });

  describe('that end a call in its waiting event', () => {
    /** Aborts the n-th call that is reported as waiting. */
    const abortingInstance = (stop: AbortController, nth = 1) => {
      let told = 0;
      const observer = ({ type }: LockEvent) => {
        if (type === 'waiting' && ++told === nth) stop.abort();
      };
      return world.instance('a', { observers: [observer] });
    };

    it('break nothing if its time ends at that moment', async () => {
      const stop = new AbortController();
      const { locks, store } = abortingInstance(stop);
      store.fates.acquire = lostOnTheWay;
      const call = track(locks.acquire('stock', { waitMs: 1_000, attemptTimeoutMs: 1_000, signal: stop.signal }));
      await world.clock.advance(1_000);
      expect(call.error).toMatchObject({ code: 'LOCK_ABORTED' });
    });

    it('end no other call with it, which has more time', async () => {
      const stop = new AbortController();
      const { locks, store } = abortingInstance(stop, 2);
      store.fates.acquire = lostOnTheWay;
      const first = track(locks.acquire('stock', { waitMs: 1_000, attemptTimeoutMs: 1_000, signal: stop.signal }));
      const second = track(locks.acquire('stock', { waitMs: 60_000 }));
      await world.clock.advance(1_000);
      expect([first.error, second.state]).toEqual([expect.objectContaining({ code: 'LOCK_ABORTED' }), 'pending']);
    });

    it('leave no alarm behind for it', async () => {
      const stop = new AbortController();
      const { locks } = abortingInstance(stop);
      const held = await locks.acquire('stock');
      const call = track(locks.acquire('stock', { waitMs: 60_000, signal: stop.signal }));
      await settle();
      expect(call.error).toMatchObject({ code: 'LOCK_ABORTED' });
      await held.release();
      expect(locks.stats()).toMatchObject({ resources: 0, alarms: 0 });
    });
  });

  it('receive an acquisition that fails', async () => {
    const a = world.instance('a');
    const b = world.instance('b');
    await a.locks.acquire('stock');
    const error = await b.locks.acquire('stock', { waitMs: 0 }).catch((e: unknown) => e);
    expect(b.events).toEqual([
      {
        type: 'notAcquired',
        service: 'default',
        resource: 'stock',
        mode: 'exclusive',
        group: 'stock',
        resources: ['stock'],
        waitedMs: 0,
        hasWaited: false,
        error,
      },
    ]);
  });

  it('can unsubscribe', async () => {
    const a = world.instance('a');
    const heard: LockEvent[] = [];
    const leave = a.locks.observers.add((event) => heard.push(event));
    const lease = await a.locks.acquire('stock');
    leave();
    await lease.release();
    expect(heard.map(({ type }) => type)).toEqual(['acquired']);
  });
});

/** The simulation of contention has every other ending, in any order. These are the endings by name. */
describe('a metric from event counts returns to 0', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let counts: EventCounts;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
    counts = new EventCounts(b.locks.observers);
  });

  function expectBegun(begun: EventCounts['begun']): void {
    expect({ begun: counts.begun, left: counts.left, wrong: counts.wrong }).toEqual({ begun, left: {}, wrong: [] });
  }

  it('after polling that ends because the retry strategy of the user throws', async () => {
    await a.locks.acquire('order:7');
    const fault = new TypeError('no such setting');
    const next = ({ attempt }: { attempt: number }): number => {
      if (attempt === 1) return 50;
      throw fault;
    };
    const polling = track(b.locks.acquire('order:7', { retry: { next } }));
    await world.clock.advance(100);
    expect(polling.error).toBe(fault);
    const [told] = b.events.filter(({ type }) => type === 'notAcquired');
    expect(told).toMatchObject({ resource: 'order:7', hasWaited: true, waitedMs: 50 });
    expect(told).toMatchObject({ error: { code: 'INVALID_LOCK_OPTIONS', option: 'retry', cause: fault } });
    expectBegun({ held: 0, waiting: 1 });
  });

  it.each<[string, unknown]>([
    ['an error', new TypeError('no such setting')],
    ['a text', 'no such setting'],
    ['nothing', undefined],
    ['a frozen object', Object.freeze({})],
    ['an object that cannot be read', hostile()],
    ['an error of a lock', new LockAbortedError('order:1', undefined)],
  ])('after polling for several resources whose retry strategy throws %s', async (_, fault) => {
    await a.locks.acquire('b:2');
    const next = ({ attempt }: { attempt: number }): number => {
      if (attempt === 1) return 50;
      throw fault;
    };
    const retry = { next };
    const polling = [
      b.locks.acquire(['a:1', 'b:2', 'c:3'], { retry }),
      b.locks.acquire('b:2', { retry }),
      b.locks.using('b:2', { retry }, () => {}),
    ].map((call) =>
      call.then(
        () => false,
        (thrown: unknown) => thrown === fault,
      ),
    );
    await world.clock.advance(100);
    expect(await Promise.all(polling)).toEqual([true, true, true]);
    const told = b.events.flatMap((event) => (event.type === 'notAcquired' ? [event] : []));
    const resources = told.map((event) => event.resources.join());
    expect(resources.toSorted()).toEqual(['a:1,b:2,c:3', 'b:2', 'b:2']);
    for (const event of told)
      expect(event).toMatchObject({ resource: 'b:2', group: 'b', hasWaited: true, waitedMs: 50 });
    expectBegun({ held: 1, waiting: 3 });
  });

  it('after a lost lease, even if its release fails then, and after an unconfirmed release', async () => {
    const lost = await b.locks.acquire('order:7', { leaseMs: 1_000, watchdog: false });
    await world.clock.advance(1_000);
    b.store.fates.release = brokenAfter;
    await lost.release().catch(() => {});
    const unconfirmed = await b.locks.acquire('order:8');
    await expect(unconfirmed.release()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(b.events.filter(({ type }) => type === 'releaseFailed')).toMatchObject([
      { resource: 'order:8', isEnd: true },
    ]);
    expectBegun({ held: 2, waiting: 0 });
  });

  it('after leases that are passed on in memory, by their events', async () => {
    const leases = Array.from({ length: 5 }, () => track(b.locks.acquire('order:7')));
    for (const lease of leases) {
      await world.clock.advance(1);
      await lease.value.release();
    }
    const acquired = b.events.flatMap((event) => (event.type === 'acquired' ? [event] : []));
    expect(acquired.map(({ handedOn }) => handedOn)).toEqual([false, true, true, true, true]);
    expect(acquired.map(({ hasWaited }) => hasWaited)).toEqual([false, true, true, true, true]);
    expectBegun({ held: 5, waiting: 4 });
  });

  it('at a shutdown, also of a fixed lease that nothing renews', async () => {
    await b.locks.acquire('order:7');
    const fixed = await b.locks.acquire('order:8', { watchdog: false });
    const closing = b.locks.shutdown(0);
    await world.clock.advance(LOCK_DEFAULTS.attemptTimeoutMs);
    await closing;
    expect(fixed.isHeld()).toBe(true);
    expect(counts.left).toEqual({});
    await fixed.release().catch(() => {});
    expectBegun({ held: 2, waiting: 0 });
  });

  it('after leaderships, whose candidates do not count as waiting', async () => {
    a.locks.campaign('mailer');
    const campaign = b.locks.campaign('mailer');
    await world.clock.advance(60_000);
    expect(counts.begun).toEqual({ held: 0, waiting: 0 });
    await a.locks.leadership('mailer')!.resign();
    await world.clock.advance(1_000);
    expect(counts.left).toEqual({ 'held default exclusive leader:mailer': 1 });
    await campaign.resign();
    expectBegun({ held: 1, waiting: 0 });
  });
});

function hostile(): object {
  const trap = (): never => {
    throw new Error('this object cannot be read');
  };
  return new Proxy({}, { get: trap, getPrototypeOf: () => null });
}

describe('a telemetry', () => {
  it('is started with the service, receives events by type, and is stopped after the last of them', async () => {
    const world = new LockWorld();
    const told: string[] = [];
    let source: LockTelemetrySource | undefined;
    const telemetry: LockTelemetry = {
      start(given) {
        source = given;
        given.observe(({ type, service }) => told.push(`${type} ${service}`), ['acquired', 'lost']);
        return () => told.push('stopped');
      },
    };
    const { locks } = world.instance('a', { telemetry: [telemetry], service: 'billing' });
    expect(source!.service).toBe('billing');
    await locks.acquire('stock');
    expect(source!.stats()).toMatchObject({ leases: 1 });
    const closing = locks.shutdown(0);
    await world.clock.advance(1_000);
    await closing;
    expect(told).toEqual(['acquired billing', 'lost billing', 'stopped']);
  });

  it('that throws everywhere breaks nothing, and causes one warning', async () => {
    const world = new LockWorld();
    const lines: string[] = [];
    const fail = (): never => {
      throw new Error('the exporter is gone');
    };
    const bad: LockTelemetry = {
      start(source) {
        source.observe(fail);
        // TypeScript accepts an async function here.
        const rejecting: () => unknown = () => Promise.reject(new Error('async'));
        source.observe(rejecting as () => void);
        source.onRegistered(fail);
        return fail;
      },
    };
    const worse: LockTelemetry = { start: fail };
    const { locks } = world.instance('a', { telemetry: [bad, worse], warn: (line) => lines.push(line) });
    locks.observers.groups.register('job', 'nightly');
    await locks.using('stock', undefined, () => {});
    await locks.shutdown(0);
    expect(world.server.isEmpty).toBe(true);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^The module option telemetry threw\. .*the exporter is gone/s);
  });

  it('whose async functions reject breaks nothing either, and does not end the process', async () => {
    const world = new LockWorld();
    const lines: string[] = [];
    // TypeScript accepts async functions for most of these.
    const reject = (): never => Promise.reject(new Error('the exporter is gone')) as never;
    const run = <T>(work: () => T): T => work();
    const hold = { run, ended: reject };
    const call = { traceparent: undefined, run, waits: reject, granted: () => hold, failed: reject };
    const tracing: LockTelemetry = {
      start: (source) => source.trace({ acquire: () => call, tick: () => undefined }),
    };
    const { locks } = world.instance('a', {
      telemetry: [tracing, { start: reject }],
      warn: (line) => lines.push(line),
    });
    const lease = await locks.acquire('stock');
    await expect(locks.acquire('stock', { waitMs: 0 })).rejects.toMatchObject({ code: 'LOCK_BUSY' });
    await lease.release();
    await locks.shutdown(0);
    // The test fails by a rejection that nothing handles.
    await new Promise(setImmediate);
    expect(lines).toHaveLength(1);
  });

  it.each<[string, unknown, RegExp]>([
    ['what has no text', Object.create(null), /an object \(no prototype\)$/],
    [
      'an error that cannot be read',
      Object.defineProperty(new Error('x'), 'stack', {
        get() {
          throw new Error('no stack');
        },
      }),
      / It threw a value that cannot be shown\.$/,
    ],
    [
      'an error that names a hostile resource',
      Object.assign(new Error(), { stack: 'Error: bad label a\u001b[31m\u202e\r\n    at export (a.js:1:2)' }),
      /Error: bad label a\\u001b\[31m\\u202e\\u000d\n {4}at export \(a\.js:1:2\)$/,
    ],
  ])('that throws %s breaks nothing, and is printed safely', async (_, thrown, shown) => {
    const world = new LockWorld();
    const lines: string[] = [];
    const fail = (): never => {
      throw thrown;
    };
    const tracer = { acquire: fail, tick: fail };
    const bad: LockTelemetry = {
      start(source) {
        source.observe(fail);
        source.trace(tracer);
        return fail;
      },
    };
    const { locks } = world.instance('a', { telemetry: [bad, { start: fail }], warn: (line) => lines.push(line) });
    await locks.using('stock', undefined, () => {});
    await locks.shutdown(0);
    expect(world.server.isEmpty).toBe(true);
    expect(lines).toEqual([expect.stringMatching(shown)]);
  });
});
