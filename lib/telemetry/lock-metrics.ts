import type { LockTelemetrySource } from '../core/events/telemetry.js';
import { escapeText } from '../core/util/quoted.js';
import type { LockMetric } from './names.js';
import { Recorder } from './recorder.js';
import { type MetricSink, type Series, SeriesTable } from './series.js';
import { ServiceSeries } from './service-series.js';

/** The metrics of one meter or registry, for every lock service that reports to it. */
export class LockMetrics<A> {
  readonly #table: SeriesTable<A>;
  readonly #services = new Map<string, ServiceSeries<A>>();
  /** Those that report here now. Named twice in the option telemetry, the same metrics must not count twice. */
  readonly #sources = new WeakSet<LockTelemetrySource>();

  constructor(
    sink: MetricSink<A>,
    private readonly now: () => number = Date.now,
  ) {
    this.#table = new SeriesTable(sink);
  }

  /** The series of a metric that is no histogram, as they are now. */
  seriesOf(metric: LockMetric): readonly Series<A>[] {
    return this.#table.of(metric);
  }

  /** @returns a function that ends it, when the lock service has closed */
  start(source: LockTelemetrySource): () => void {
    if (this.#sources.has(source)) return () => {};
    this.#sources.add(source);
    const name = escapeText(source.service);
    let service = this.#services.get(name);
    if (service === undefined) {
      service = new ServiceSeries(this.#table, name);
      this.#services.set(name, service);
    }
    const stop = new Recorder(this.#table, service, this.now).start(source);
    return () => {
      this.#sources.delete(source);
      stop();
    };
  }
}
