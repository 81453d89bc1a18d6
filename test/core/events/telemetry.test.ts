import type { LockTelemetry, LockTelemetrySource } from '../../../lib/core/events/telemetry.js';
import { LockWorld } from '../../support/world/lock-world.js';

describe('a telemetry', () => {
  it('is started with the service, hears of events by type, and is stopped after the last of them', async () => {
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

  it('that throws everywhere breaks nothing, and is warned of once', async () => {
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
});
