import { LOCK_METRICS, LockAttribute, LockMetric } from './names.js';
import type { LockError } from '../core/api/errors.js';
import { type AcquireOutcome, CODES_WITH_OUTCOME, outcomeOfCode } from '../core/events/events.js';

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

const { ErrorType, Outcome, Reason } = LockAttribute;
const ACQUIRED: AcquireOutcome = 'acquired';

/** The series of the locks of one service that have the same group and mode. */
export class LockSeries<A> {
  /** Of the values that a package puts into buckets by itself. */
  readonly attributes: A;
  readonly waiting: Series<A>;
  readonly held: Series<A>;
  readonly acquired: Series<A>;
  readonly handOvers: Series<A>;
  readonly heldLong: Series<A>;
  readonly leaked: Series<A>;
  readonly renewalFailures: SeriesBy<A>;
  readonly releaseFailures: SeriesBy<A>;
  readonly #lost: SeriesBy<A>;
  readonly #notAcquired: SeriesBy<A>;
  #isComplete = false;

  constructor(table: SeriesTable<A>, attributes: Attributes) {
    const by = (metric: LockMetric, attribute: LockAttribute) => new SeriesBy(table, metric, attributes, attribute);
    this.attributes = table.sink.attributesOf(attributes);
    this.waiting = table.add(LockMetric.Waiting, attributes);
    this.held = table.add(LockMetric.Held, attributes);
    this.acquired = table.add(LockMetric.Acquire, { ...attributes, [Outcome]: ACQUIRED });
    this.handOvers = table.add(LockMetric.HandOvers, attributes);
    this.heldLong = table.add(LockMetric.HeldLong, attributes);
    this.leaked = table.add(LockMetric.Leaked, attributes);
    this.renewalFailures = by(LockMetric.RenewalFailures, ErrorType);
    this.releaseFailures = by(LockMetric.ReleaseFailures, ErrorType);
    this.#lost = by(LockMetric.Lost, Reason);
    this.#notAcquired = by(LockMetric.Acquire, ErrorType);
  }

  /** Makes the series that have no value yet, so that an alert sees the first one as an increase. */
  complete(): void {
    if (this.#isComplete) return;
    this.#isComplete = true;
    for (const code of CODES_WITH_OUTCOME) this.#failedWith(code);
    for (const reason of LOCK_METRICS[LockMetric.Lost].values![Reason]!) this.#lost.of(reason);
    this.renewalFailures.of('LOCK_UNAVAILABLE');
    this.releaseFailures.of('LOCK_UNAVAILABLE');
  }

  notAcquired({ code }: LockError): Series<A> {
    return this.#failedWith(code);
  }

  lost(reason: string): Series<A> {
    return this.#lost.of(reason);
  }

  #failedWith(code: string): Series<A> {
    return this.#notAcquired.of(code, { [Outcome]: outcomeOfCode(code) });
  }
}
