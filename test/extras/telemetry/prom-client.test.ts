import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { AggregatorRegistry, Gauge, Registry } from 'prom-client';
import { LeaseLostError, LockTimeoutError, LockUnavailableError } from 'nestjs-redis-lock';
import { LOCK_METRICS, LockMetric, lockMetrics, prometheusNameOf } from 'nestjs-redis-lock/prom-client';
import { openTelemetry } from 'nestjs-redis-lock/telemetry';
import { FakeSource } from './fake-source.js';

const unavailable = new LockUnavailableError('order:7', 'acquire', 'timeout', new Error('no answer'));

/** Something of everything, with names that need escaping. */
function load(source: FakeSource): void {
  source.register('method', 'Orders.pay');
  source.register('job', 'nightly "report"\\\n');
  source.register('leadership', 'importer');
  for (const waitedMs of [0.4, 1, 2, 3, 40, 61_000]) source.emit('acquired', { waitedMs, group: 'Orders.pay' });
  source.emit('waiting');
  source.emit('acquired', { hasWaited: true, handedOn: true, mode: 'read', group: 'a "b"\\' });
  source.emit('released', { heldMs: 12.5, group: 'Orders.pay' });
  source.emit('lost', {
    reason: 'notRenewed',
    error: new LeaseLostError('order:7', 'notRenewed', 1),
    group: 'Orders.pay',
  });
  source.emit('notAcquired', {
    error: new LockTimeoutError('order:7', { waitedMs: 2_000, attempts: 3, retryAfterMs: 100 }),
    waitedMs: 2_000,
    hasWaited: true,
  });
  source.emit('renewalFailed', { error: unavailable });
  source.emit('releaseFailed', { error: unavailable });
  for (const type of ['leaked', 'heldLong', 'eventLoopBlocked', 'campaigning', 'elected'] as const) source.emit(type);
  source.blocked({ group: 'Orders.pay', holderGroup: 'Reports.run', waitedMs: 1_500 });
  source.emit('tickStarted', { delayMs: 15 });
  source.emit('tickFinished', { ranMs: 1_500, outcome: 'error' });
  source.emit('tickSkipped', { reason: 'overlap' });
  source.emit('onceReturned', { outcome: 'hit' });
}

/** The lines of an exposition, without what the two packages order in another way. */
function linesOf(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('# UNIT'))
    .map((line) =>
      line.replace(
        /\{(.*)\}/,
        (_, labels: string) =>
          `{${labels
            .match(/\w+="(?:\\.|[^"\\])*"/g)!
            .sort()
            .join()}}`,
      ),
    )
    .sort();
}

describe('lockMetrics()', () => {
  let registry: Registry;
  let source: FakeSource;

  beforeEach(() => {
    registry = new Registry();
    source = new FakeSource();
  });

  it("prints what OpenTelemetry's exporter prints after the same load", async () => {
    const exporter = new PrometheusExporter({ preventServerStart: true });
    openTelemetry({ meterProvider: new MeterProvider({ readers: [exporter] }) }).start(source);
    lockMetrics(registry).start(source);
    load(source);
    const { resourceMetrics } = await exporter.collect();
    const serializer = new PrometheusSerializer('', false, undefined, true, true);
    const lines = linesOf(await registry.metrics());
    expect(lines).toEqual(linesOf(serializer.serialize(resourceMetrics)));
    expect(lines).toContain(
      'nestjs_redis_lock_held{lock_group="Orders.pay",lock_mode="exclusive",lock_service="default"} 4',
    );
    for (const metric of Object.values(LockMetric)) {
      expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^${prometheusNameOf(metric)}(_sum)?\\{`)));
    }
  });

  it('lock services share a registry, by one call or several, and after it was cleared', async () => {
    const held = () => registry.getSingleMetricAsString(prometheusNameOf(LockMetric.Held));
    const other = new FakeSource();
    for (const each of [source, other]) lockMetrics(registry).start(each);
    for (const each of [source, other]) each.emit('acquired');
    expect(await held()).toContain('} 2');
    registry.clear();
    lockMetrics(registry).start(source);
    source.emit('acquired');
    expect(await held()).toContain('} 1');
  });

  it('the processes of a cluster are added up', async () => {
    lockMetrics(registry).start(source);
    source.emit('acquired');
    source.emit('elected');
    const json = await registry.getMetricsAsJSON();
    const all = AggregatorRegistry.aggregate([json, json]);
    expect(await all.getSingleMetricAsString(prometheusNameOf(LockMetric.Held))).toContain('} 2');
    expect(await all.getSingleMetricAsString(prometheusNameOf(LockMetric.WaitTime))).toContain(
      '_count{lock_service="default",lock_mode="exclusive",lock_group="order"} 2',
    );
    expect(await all.getSingleMetricAsString(prometheusNameOf(LockMetric.LeaderState))).toContain('} 1');
  });

  it('refuses a registry that has such a metric of another origin', () => {
    void new Gauge({ name: prometheusNameOf(LockMetric.Held), help: 'mine', registers: [registry] });
    expect(() => lockMetrics(registry)).toThrow(/already been registered/);
  });

  it.each([[{}], [null], ['default'], [Registry]])('refuses %p, which is no registry', (value) => {
    expect(() => lockMetrics(value as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_LOCK_OPTIONS',
        message: expect.stringContaining('a Registry of prom-client'),
      }),
    );
  });

  it('describes each metric as the reference does', async () => {
    lockMetrics(registry).start(source);
    const text = await registry.metrics();
    for (const metric of Object.values(LockMetric)) {
      expect(text).toContain(`# HELP ${prometheusNameOf(metric)} ${LOCK_METRICS[metric].description}\n`);
    }
  });
});
