import { jest } from '@jest/globals';
import {
  diag,
  type DiagLogger,
  DiagLogLevel,
  type MeterProvider as Provider,
  metrics as api,
} from '@opentelemetry/api';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { InvalidLockOptionsError, LockTimeoutError } from 'nestjs-redis-lock';
import { LOCK_METRIC_BUCKETS, LOCK_METRICS, LockMetric, openTelemetry } from 'nestjs-redis-lock/telemetry';
import { FakeSource } from './fake-source.js';

/** Exports when a test asks for it. */
function useSdk(temporality = AggregationTemporality.CUMULATIVE) {
  const exporter = new InMemoryMetricExporter(temporality);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const collect = async (): Promise<Map<string, MetricData>> => {
    exporter.reset();
    await meterProvider.forceFlush();
    const scopes = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    expect(scopes.map(({ scope }) => scope.name)).toEqual(scopes.map(() => 'nestjs-redis-lock'));
    return new Map(scopes.flatMap(({ metrics }) => metrics.map((metric) => [metric.descriptor.name, metric])));
  };
  return { meterProvider, exporter, collect };
}

/** The points of a metric that is no histogram, as text. */
function points(metric: MetricData | undefined): string[] {
  return ((metric?.dataPoints ?? []) as DataPoint<number>[])
    .map(({ attributes, value }) => `${Object.values(attributes).join(' ')} = ${value}`)
    .sort();
}

const timeout = new LockTimeoutError('order:7', { waitedMs: 2_000, attempts: 3, retryAfterMs: 100 });

describe('openTelemetry()', () => {
  let source: FakeSource;

  beforeEach(() => (source = new FakeSource()));

  /** Of everything there is. */
  function emitAll(): void {
    source.register('method', 'Orders.pay');
    source.register('job', 'report');
    source.emit('waiting');
    source.emit('acquired', { hasWaited: true, waitedMs: 3 });
    source.emit('released', { heldMs: 70_000 });
    source.emit('notAcquired', { error: timeout });
    source.emit('tickStarted', { delayMs: 5 });
    source.emit('tickFinished', { outcome: 'ok', ranMs: 10 });
    source.emit('campaigning');
    source.emit('renewalFailed', { error: timeout });
    source.emit('releaseFailed', { error: timeout });
    source.emit('lost', { reason: 'takenOver' });
    source.emit('tickSkipped', { reason: 'late' });
    source.emit('onceReturned', { outcome: 'hit' });
    source.blocked({ group: 'order', holderGroup: 'report', waitedMs: 5 });
  }

  it('makes each metric with the kind, the unit and the text of the reference', async () => {
    const { meterProvider, collect } = useSdk();
    openTelemetry({ meterProvider }).start(source);
    emitAll();
    const metrics = await collect();
    expect([...metrics.keys()].sort()).toEqual(Object.values(LockMetric).sort());
    for (const [name, { descriptor, ...data }] of metrics) {
      const { kind, unit, description, attributes } = LOCK_METRICS[name as LockMetric];
      expect({ name, unit: descriptor.unit, description: descriptor.description }).toEqual({ name, unit, description });
      const isMonotonic = data.dataPointType === DataPointType.SUM && data.isMonotonic;
      expect([name, data.dataPointType, isMonotonic]).toEqual([name, ...TYPES[kind]]);
      for (const point of data.dataPoints)
        expect(attributes).toEqual(expect.arrayContaining(Object.keys(point.attributes)));
    }
  });

  it('advises the buckets of the reference, in seconds', async () => {
    const { meterProvider, collect } = useSdk();
    openTelemetry({ meterProvider }).start(source);
    source.emit('acquired', { waitedMs: 3 });
    source.emit('acquired', { waitedMs: 0.4 });
    const [point] = (await collect()).get(LockMetric.WaitTime)!.dataPoints;
    const { buckets, count, sum } = point!.value as {
      buckets: { boundaries: number[]; counts: number[] };
      count: number;
      sum: number;
    };
    expect(buckets.boundaries).toEqual(LOCK_METRIC_BUCKETS);
    expect(buckets.counts).toEqual([1, 0, 1, ...Array<number>(13).fill(0)]);
    expect(count).toBe(2);
    expect(sum).toBeCloseTo(0.0034);
  });

  it.each([AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA])(
    'has the series of what is registered at 0 before the first lock (temporality %s)',
    async (temporality) => {
      const { meterProvider, collect } = useSdk(temporality);
      openTelemetry({ meterProvider }).start(source);
      source.register('method', 'Orders.pay');
      source.register('job', 'report');
      const first = await collect();
      expect(points(first.get(LockMetric.Held))).toEqual([
        'default exclusive Orders.pay = 0',
        'default exclusive report = 0',
      ]);
      expect(points(first.get(LockMetric.Acquire))).toContain('default exclusive Orders.pay LOCK_TIMEOUT timeout = 0');
      expect(points(first.get(LockMetric.JobLastSuccess))).toEqual(['default report = 0']);
      expect(points(first.get(LockMetric.JobRuns))).toContain('default report error = 0');
      // A histogram has no value of 0: OpenTelemetry knows only values that were recorded.
      expect(first.has(LockMetric.WaitTime)).toBe(false);
      source.emit('notAcquired', { group: 'Orders.pay', error: timeout });
      expect(points((await collect()).get(LockMetric.Acquire))).toContain(
        'default exclusive Orders.pay LOCK_TIMEOUT timeout = 1',
      );
      const third = temporality === AggregationTemporality.DELTA ? 0 : 1;
      expect(points((await collect()).get(LockMetric.Acquire))).toContain(
        `default exclusive Orders.pay LOCK_TIMEOUT timeout = ${third}`,
      );
    },
  );

  it('exports the last values when the provider shuts down after the lock service', async () => {
    const { meterProvider, exporter } = useSdk();
    const stop = openTelemetry({ meterProvider }).start(source)!;
    source.emit('acquired');
    source.emit('acquired');
    source.emit('released');
    stop();
    const exported = jest.spyOn(exporter, 'export');
    await meterProvider.shutdown();
    const metrics = new Map(
      exported.mock.calls[0]![0].scopeMetrics[0]!.metrics.map((each) => [each.descriptor.name, each]),
    );
    expect(points(metrics.get(LockMetric.Acquire))).toEqual(['default exclusive order acquired = 2']);
    expect(points(metrics.get(LockMetric.Held))).toEqual(['default exclusive order = 0']);
  });

  it('gives each value of a histogram to the SDK once, however many come at once, and before it is asked', async () => {
    const { meterProvider, collect } = useSdk();
    const count = async () =>
      ((await collect()).get(LockMetric.WaitTime)!.dataPoints[0]!.value as { count: number }).count;
    openTelemetry({ meterProvider }).start(source);
    for (let i = 0; i < 2_500; i++) source.emit('acquired', { waitedMs: i });
    expect(await count()).toBe(2_500);
    source.emit('acquired');
    expect(await count()).toBe(2_501);
    await new Promise(setImmediate);
    expect(await count()).toBe(2_501);
  });

  describe('without a provider of its own', () => {
    afterEach(() => {
      api.disable();
      diag.disable();
    });

    it('takes the one that is registered when the lock service starts', async () => {
      const telemetry = openTelemetry();
      const { meterProvider, collect } = useSdk();
      api.setGlobalMeterProvider(meterProvider);
      telemetry.start(source);
      source.emit('acquired');
      expect(points((await collect()).get(LockMetric.Held))).toEqual(['default exclusive order = 1']);
    });

    it('without a provider, it warns in the log of OpenTelemetry and observes nothing', () => {
      const warn = jest.fn<DiagLogger['warn']>();
      const nothing = () => {};
      diag.setLogger({ warn, error: nothing, info: nothing, debug: nothing, verbose: nothing }, DiagLogLevel.WARN);
      openTelemetry().start(source);
      expect(warn).toHaveBeenCalledWith(expect.stringContaining('no MeterProvider is registered'));
      expect(source.isObserved).toBe(false);
    });
  });

  it.each([
    [{ meterProvider: {} as Provider }, 'meterProvider'],
    [{ meterProvider: null as unknown as Provider }, 'meterProvider'],
    [{ metrics: 'yes' as unknown as boolean }, 'metrics'],
    [{ meter: 1 } as object, 'meter'],
    [{ metrics: false, traces: false }, 'reports nothing'],
  ])('refuses %j', (options, name) => {
    const call = () => openTelemetry(options);
    expect(call).toThrow(InvalidLockOptionsError);
    expect(call).toThrow(name);
  });
});

const TYPES = {
  histogram: [DataPointType.HISTOGRAM, false],
  counter: [DataPointType.SUM, true],
  upDownCounter: [DataPointType.SUM, false],
  gauge: [DataPointType.GAUGE, false],
} as const;
