import { LOCK_METRICS, type LockAttribute, LockMetric } from './names.js';

export type Attributes = Readonly<Partial<Record<LockAttribute, string>>>;

/** One value of a metric, with the attributes that the package of the user wants. */
export interface Series<A> {
  readonly attributes: A;
  value: number;
}

/** What a package for metrics does with ours. */
export interface MetricSink<A> {
  /** Attributes in its form. They are made once, and used for each value. */
  attributesOf(attributes: Attributes): A;
  /** Takes a value of a histogram. */
  record(metric: LockMetric, value: number, attributes: A): void;
}

/** Every series of every metric that is no histogram: it is read when a package collects. */
export class SeriesTable<A> {
  readonly #series = new Map<LockMetric, Series<A>[]>();

  constructor(readonly sink: MetricSink<A>) {
    for (const metric of Object.values(LockMetric)) {
      if (LOCK_METRICS[metric].kind !== 'histogram') this.#series.set(metric, []);
    }
  }

  add(metric: LockMetric, attributes: Attributes): Series<A> {
    const series = { attributes: this.sink.attributesOf(attributes), value: 0 };
    this.#series.get(metric)!.push(series);
    return series;
  }

  of(metric: LockMetric): readonly Series<A>[] {
    return this.#series.get(metric) ?? [];
  }
}

/** The series of a metric that differ in one more attribute. Each is there from its first value. */
export class SeriesBy<A> {
  readonly #series = new Map<string, Series<A>>();

  constructor(
    private readonly table: SeriesTable<A>,
    private readonly metric: LockMetric,
    private readonly attributes: Attributes,
    private readonly by: LockAttribute,
  ) {}

  /** @param more attributes that follow from the key, for a new series */
  of(key: string, more?: Attributes): Series<A> {
    let series = this.#series.get(key);
    if (series === undefined) {
      series = this.table.add(this.metric, { ...this.attributes, [this.by]: key, ...more });
      this.#series.set(key, series);
    }
    return series;
  }
}
