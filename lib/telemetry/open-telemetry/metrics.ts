import {
  type Attributes as OpenTelemetryAttributes,
  createNoopMeter,
  diag,
  type Histogram,
  type Meter,
  type MeterProvider,
  type MetricOptions,
  metrics,
  type ObservableResult,
  ROOT_CONTEXT,
  ValueType,
} from '@opentelemetry/api';
import type { LockTelemetry } from '../../core/events/telemetry.js';
import { LockMetrics } from '../lock-metrics.js';
import { LOCK_METRIC_BUCKETS, LOCK_METRICS, LockMetric } from '../names.js';
import type { Attributes, MetricSink } from '../series.js';

/** Values of histograms that wait until they are given to the SDK. */
const MOST_WAITING = 1_000;

/** Our metrics in each meter: lock services that report to the same one share its series. */
const inMeters = new WeakMap<Meter, LockMetrics<OpenTelemetryAttributes>>();

/** The metrics of lock services, by OpenTelemetry. */
export class OpenTelemetryMetrics implements LockTelemetry {
  constructor(
    private readonly scope: string,
    private readonly provider: MeterProvider | undefined,
  ) {}

  start(source: Parameters<LockTelemetry['start']>[0]): (() => void) | void {
    // Not before: an application may register its provider after the module was configured.
    const meter = (this.provider ?? metrics.getMeterProvider()).getMeter(this.scope);
    if (meter === createNoopMeter()) {
      diag.warn(`${this.scope}: no MeterProvider is registered, so locks are not measured. Start the SDK before Nest.`);
      return;
    }
    let ours = inMeters.get(meter);
    if (ours === undefined) {
      ours = createMetrics(meter);
      inMeters.set(meter, ours);
    }
    return ours.start(source);
  }
}

function createMetrics(meter: Meter): LockMetrics<OpenTelemetryAttributes> {
  const sink = new HistogramSink(meter);
  const ours = new LockMetrics(sink);
  for (const metric of Object.values(LockMetric)) {
    const instrument = createObservable(meter, metric);
    // Read when a reader collects: an SDK takes a microsecond to find a series by its attributes, for each value.
    instrument?.addCallback((result: ObservableResult) => {
      sink.flush();
      for (const { value, attributes } of ours.seriesOf(metric)) result.observe(value, attributes);
    });
  }
  return ours;
}

function createObservable(meter: Meter, metric: LockMetric) {
  const { kind, unit, description } = LOCK_METRICS[metric];
  const options: MetricOptions = { unit, description, valueType: unit === 's' ? ValueType.DOUBLE : ValueType.INT };
  switch (kind) {
    case 'counter':
      return meter.createObservableCounter(metric, options);
    case 'upDownCounter':
      return meter.createObservableUpDownCounter(metric, options);
    case 'gauge':
      return meter.createObservableGauge(metric, options);
    case 'histogram':
      return undefined;
  }
}

/**
 * Takes the values of histograms, which an SDK wants one by one. It gets them when this process has nothing better to do,
 * mostly while a command is on its way to Redis: an SDK takes a microsecond for each.
 */
class HistogramSink implements MetricSink<OpenTelemetryAttributes> {
  readonly #histograms = new Map<LockMetric, Histogram>();
  #waiting: { readonly histogram: Histogram; readonly value: number; readonly attributes: OpenTelemetryAttributes }[] =
    [];
  #error: { readonly thrown: unknown } | undefined;

  constructor(meter: Meter) {
    for (const metric of Object.values(LockMetric)) {
      const { kind, unit, description } = LOCK_METRICS[metric];
      if (kind !== 'histogram') continue;
      const advice = { explicitBucketBoundaries: [...LOCK_METRIC_BUCKETS] };
      const options = { unit, description, valueType: ValueType.DOUBLE, advice };
      this.#histograms.set(metric, meter.createHistogram(metric, options));
    }
  }

  attributesOf(attributes: Attributes): OpenTelemetryAttributes {
    return Object.freeze({ ...attributes });
  }

  record(metric: LockMetric, value: number, attributes: OpenTelemetryAttributes): void {
    if (this.#waiting.length === 0) setImmediate(() => this.flush());
    this.#waiting.push({ histogram: this.#histograms.get(metric)!, value, attributes });
    if (this.#waiting.length >= MOST_WAITING) this.flush();
    if (this.#error === undefined) return;
    const { thrown } = this.#error;
    this.#error = undefined;
    throw thrown;
  }

  /** Also before a reader collects. */
  flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      // An SDK that filters attributes would look for the active context, and there is none.
      for (const { histogram, value, attributes } of waiting) histogram.record(value, attributes, ROOT_CONTEXT);
    } catch (thrown) {
      // The lock service learns of it with the next value: here, it would end the process.
      this.#error ??= { thrown };
    }
  }
}
