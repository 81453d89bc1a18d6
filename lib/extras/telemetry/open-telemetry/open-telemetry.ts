import { entryOf } from '../../../kernel/util/objects.js';
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
  type TracerProvider,
  ValueType,
} from '@opentelemetry/api';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { describeValue, Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';
import type { LockTelemetry } from '../../../kernel/events/telemetry.js';
import { LockSpans } from '../spans/lock-spans.js';
import { LockMetrics } from '../lock-metrics.js';
import { LOCK_METRIC_BUCKETS, LOCK_METRICS, LockMetric } from '../names.js';
import type { Attributes, MetricSink } from '../series.js';

const SCOPE = 'nestjs-redis-lock';

/** Options of {@link openTelemetry}. */
export interface OpenTelemetryOptions {
  /**
   * `true` records metrics.
   *
   * @default true
   */
  metrics?: boolean;
  /**
   * The provider that creates the meter.
   *
   * @allowed an OpenTelemetry `MeterProvider`
   * @default the global provider at the start of the lock service
   */
  meterProvider?: MeterProvider;
  /**
   * `true` records waits, holds and job runs as spans.
   *
   * @default true
   */
  traces?: boolean;
  /**
   * The provider that creates the tracer.
   *
   * @allowed an OpenTelemetry `TracerProvider`
   * @default the global provider, even if it is registered later
   */
  tracerProvider?: TracerProvider;
  /**
   * `true` also records renewals as spans, one for every third of `leaseMs`. A renewal by the watchdog is a separate
   * trace, with a link to the `hold` span.
   *
   * @default false
   */
  renewalSpans?: boolean;
}

export const OPEN_TELEMETRY_OPTIONS = new OptionTable({
  metrics: Option.flag().default(true),
  meterProvider: provider<MeterProvider>('getMeter'),
  traces: Option.flag().default(true),
  tracerProvider: provider<TracerProvider>('getTracer'),
  renewalSpans: Option.flag().default(false),
} satisfies OptionsOf<OpenTelemetryOptions>);

/**
 * Reports metrics and traces through the OpenTelemetry API, for the module option `telemetry`. Your application
 * provides the SDK and its exporters.
 *
 * @throws InvalidLockOptionsError if an option is invalid
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): LockTelemetry {
  OPEN_TELEMETRY_OPTIONS.check('openTelemetry', options);
  const { metrics, traces, renewalSpans, meterProvider, tracerProvider } = OPEN_TELEMETRY_OPTIONS.filled(options);
  if (!metrics && !traces) {
    const what = 'openTelemetry() with metrics: false and traces: false reports nothing. Leave it out instead.';
    throw new InvalidLockOptionsError(what, 'traces');
  }
  const telemetries: LockTelemetry[] = [];
  if (metrics) telemetries.push(metricTelemetry(meterProvider));
  if (traces) telemetries.push(spanTelemetry(tracerProvider, renewalSpans));
  return together(telemetries);
}

/** Combines several telemetries. If one of them throws at the start, the others are stopped again. */
function together(telemetries: readonly LockTelemetry[]): LockTelemetry {
  return {
    start(source) {
      const stops: (() => void)[] = [];
      const stop = (): void => {
        for (const each of stops.splice(0)) each();
      };
      try {
        for (const telemetry of telemetries) stops.push(telemetry.start(source) ?? (() => {}));
      } catch (error) {
        stop();
        throw error;
      }
      return stop;
    },
  };
}

/** Recognizes a provider of an SDK by its method. */
function provider<T>(method: string): Option<T> {
  return Option.checked<T>((option, value) => {
    if (typeof (value as Record<string, unknown> | null)?.[method] === 'function') return;
    throw new InvalidLockOptionsError(
      `${option} of openTelemetry() must be a provider of an OpenTelemetry SDK, with the method ${method}(), ` +
        `not ${describeValue(value)}.`,
      option,
    );
  });
}

/**
 * Makes spans of acquisitions, holds and runs of jobs.
 *
 * @param provider default: the registered one, even if that happens later
 * @param renewalSpans whether renewals are spans, too
 */
export function spanTelemetry(provider?: TracerProvider, renewalSpans = false): LockTelemetry {
  return { start: (source) => source.trace(new LockSpans(provider, renewalSpans)) };
}

/** The maximum of histogram values that wait for a call of the SDK. */
const MAX_WAITING = 1_000;

/** Our metrics in each meter: lock services that report to the same one share its series. */
const inMeters = new WeakMap<Meter, LockMetrics<OpenTelemetryAttributes>>();

/** Records metrics. @param provider default: the one that is registered when a lock service starts */
function metricTelemetry(provider?: MeterProvider): LockTelemetry {
  return {
    start(source) {
      // Not earlier: an application may register its provider after the module was configured.
      const meter = (provider ?? metrics.getMeterProvider()).getMeter(SCOPE);
      if (meter !== createNoopMeter()) return entryOf(inMeters, meter, () => createMetrics(meter)).start(source);
      diag.warn(`${SCOPE}: no MeterProvider is registered, so locks are not measured. Start the SDK before Nest.`);
    },
  };
}

function createMetrics(meter: Meter): LockMetrics<OpenTelemetryAttributes> {
  const sink = new HistogramSink(meter);
  const ours = new LockMetrics(sink);
  for (const metric of Object.values(LockMetric)) {
    const instrument = createObservable(meter, metric);
    // Read when a reader collects: an SDK takes a microsecond per value to find a series by its attributes.
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
 * Collects the values of histograms and passes them to the SDK while the process is idle, mostly while a command is on
 * its way to Redis: an SDK takes a microsecond for each value, and takes them one by one.
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
    if (this.#waiting.length >= MAX_WAITING) this.flush();
    if (this.#error === undefined) return;
    const { thrown } = this.#error;
    this.#error = undefined;
    throw thrown;
  }

  /** Also called before a reader collects. */
  flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      // An SDK that filters attributes would look for the active context, and there is none.
      for (const { histogram, value, attributes } of waiting) histogram.record(value, attributes, ROOT_CONTEXT);
    } catch (thrown) {
      // Thrown with the next value, so that the lock service catches it: here, it would end the process.
      this.#error ??= { thrown };
    }
  }
}
