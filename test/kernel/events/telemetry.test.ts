import type { LockTelemetry, LockTelemetrySource } from '../../../lib/kernel/events/telemetry.js';
import { LockWorld } from '../../support/world/lock-world.js';

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
