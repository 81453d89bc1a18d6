import { Counter, Gauge, Histogram, register, type Registry, type RegistryContentType } from 'prom-client';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { describeValue } from '../../../kernel/api/validation.js';
import type { LockTelemetry } from '../../../kernel/events/telemetry.js';
import { LockMetrics } from '../lock-metrics.js';
import { LOCK_METRIC_BUCKETS, LOCK_METRICS, LockMetric, prometheusNameOf } from '../names.js';
import type { Attributes, MetricSink } from '../series.js';

type Labels = Record<string, string>;

/** Our metrics in each registry: lock services that report to the same one share its series. */
const inRegistries = new WeakMap<object, RegisteredMetrics>();

/**
 * Records metrics in a registry of `prom-client`, for the module option `telemetry`. The metrics have the same names as
 * with OpenTelemetry's Prometheus exporter, so the same dashboards and alerts work.
 *
 * @param registry the registry to use; by default, the default registry of `prom-client`
 * @throws InvalidLockOptionsError if it is not a registry
 * @throws Error if the registry already has other metrics with these names
 */
export function lockMetrics(registry: Registry<RegistryContentType> = register): LockTelemetry {
  checkRegistry(registry);
  let ours = inRegistries.get(registry);
  if (!ours?.isIn(registry)) {
    ours = new RegisteredMetrics(registry);
    inRegistries.set(registry, ours);
  }
  const { metrics } = ours;
  return { start: (source) => metrics.start(source) };
}

class RegisteredMetrics implements MetricSink<Labels> {
  readonly metrics = new LockMetrics(this);
  readonly #histograms = new Map<LockMetric, Histogram>();

  constructor(registry: Registry<RegistryContentType>) {
    for (const metric of Object.values(LockMetric)) this.#register(metric, registry);
  }

  /** `false` after `registry.clear()`. */
  isIn(registry: Registry<RegistryContentType>): boolean {
    const [[metric, histogram] = []] = this.#histograms;
    return metric !== undefined && registry.getSingleMetric(prometheusNameOf(metric)) === histogram;
  }

  attributesOf(attributes: Attributes): Labels {
    return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [labelOf(name), value]));
  }

  record(metric: LockMetric, value: number, labels: Labels): void {
    this.#histograms.get(metric)!.observe(labels, value);
  }

  #register(metric: LockMetric, registry: Registry<RegistryContentType>): void {
    const { kind, description: help, attributes } = LOCK_METRICS[metric];
    const common = { name: prometheusNameOf(metric), help, labelNames: attributes.map(labelOf), registers: [registry] };
    const { metrics } = this;
    switch (kind) {
      case 'histogram':
        this.#histograms.set(metric, new Histogram({ ...common, buckets: [...LOCK_METRIC_BUCKETS] }));
        break;
      case 'counter':
        void new Counter({
          ...common,
          collect() {
            this.reset();
            for (const { attributes: labels, value } of metrics.seriesOf(metric)) this.inc(labels, value);
          },
        });
        break;
      default:
        void new Gauge({
          ...common,
          // For the worker processes of a cluster.
          aggregator: kind === 'gauge' ? 'max' : 'sum',
          collect() {
            this.reset();
            for (const { attributes: labels, value } of metrics.seriesOf(metric)) this.set(labels, value);
          },
        });
    }
  }
}

function checkRegistry(registry: unknown): void {
  if (typeof (registry as Registry | null)?.registerMetric === 'function') return;
  throw new InvalidLockOptionsError(
    `lockMetrics() takes a Registry of prom-client, such as its register, not ${describeValue(registry)}.`,
    'registry',
  );
}

function labelOf(attribute: string): string {
  return attribute.replaceAll('.', '_');
}
