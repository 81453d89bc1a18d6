import { LOCK_METRICS, LockAttribute, LockMetric } from './names.js';
import type { LockError } from '../../kernel/api/errors.js';
import { OTHER_GROUP } from '../../kernel/api/holder.js';
import type { LockMode } from '../../kernel/api/lock-mode.js';
import { type AcquireOutcome, CODES_WITH_OUTCOME, outcomeOfCode } from '../../kernel/events/events.js';
import { MAX_GROUPS } from '../../kernel/events/observers.js';
import { entryOf } from '../../kernel/util/objects.js';
import { escapeText } from '../../kernel/util/quoted.js';

export type Attributes = Readonly<Partial<Record<LockAttribute, string>>>;

/** One value of a metric, with attributes in the form of the metrics package. */
export interface Series<A> {
  readonly attributes: A;
  value: number;
}

/** The metrics package behind the series. */
export interface MetricSink<A> {
  /** Converts attributes to its form. Called once per series. */
  attributesOf(attributes: Attributes): A;
  /** Takes a value of a histogram. */
  record(metric: LockMetric, value: number, attributes: A): void;
}

/** Every series of every metric that is no histogram, read when the package collects. */
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

/** The series of a metric that differ in one more attribute. Each exists from its first value. */
class SeriesBy<A> {
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

const { ErrorType, Group, HolderGroup, Job, Leadership, Mode, Outcome, Reason, Service } = LockAttribute;
const ACQUIRED: AcquireOutcome = 'acquired';

/** The series of the locks of one service that have the same group and mode. */
export class LockSeries<A> {
  /** For the histograms of the package, which has no series of ours. */
  readonly attributes: A;
  readonly waiting: Series<A>;
  readonly held: Series<A>;
  readonly acquired: Series<A>;
  readonly handOvers: Series<A>;
  readonly heldLong: Series<A>;
  readonly leaked: Series<A>;
  readonly renewalFailures: SeriesBy<A>;
  readonly releaseFailures: SeriesBy<A>;
  readonly lost: SeriesBy<A>;
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
    this.lost = by(LockMetric.Lost, Reason);
    this.#notAcquired = by(LockMetric.Acquire, ErrorType);
  }

  /** Creates the series that have no value yet, so that an alert sees the first one as an increase. */
  complete(): void {
    if (this.#isComplete) return;
    this.#isComplete = true;
    for (const code of CODES_WITH_OUTCOME) this.notAcquired({ code });
    for (const reason of LOCK_METRICS[LockMetric.Lost].values![Reason]!) this.lost.of(reason);
    this.renewalFailures.of('LOCK_UNAVAILABLE');
    this.releaseFailures.of('LOCK_UNAVAILABLE');
  }

  notAcquired({ code }: Pick<LockError, 'code'>): Series<A> {
    return this.#notAcquired.of(code, { [Outcome]: outcomeOfCode(code) });
  }
}

/** The series of a leadership, and the campaigns of this process that lead: two for a moment during a change. */
interface LeaderSeries<A> {
  readonly state: Series<A>;
  leading: number;
}

/** The series of all lock services of one name, even of one that has closed, because counters must not go back. */
export class ServiceSeries<A> {
  readonly eventLoopBlocked: Series<A>;
  readonly jobs: BoundedNames<JobSeries<A>>;
  readonly leaderships: BoundedNames<LeaderSeries<A>>;
  /** By mode, then by group. The kernel limits the number of groups. */
  readonly #locks = new Map<LockMode, Map<string, LockSeries<A>>>();
  /** By the group that waits, then by the group of the holder. The kernel limits both. */
  readonly #blocked = new Map<string, SeriesBy<A>>();
  /** By group. The kernel limits the number of groups. */
  readonly #once = new Map<string, SeriesBy<A>>();
  readonly #attributes: Attributes;

  constructor(
    private readonly table: SeriesTable<A>,
    service: string,
  ) {
    const attributes = { [Service]: service };
    this.#attributes = attributes;
    this.eventLoopBlocked = table.add(LockMetric.EventLoopBlocked, attributes);
    this.jobs = new BoundedNames((name) => new JobSeries(table, { ...attributes, [Job]: name }));
    this.leaderships = new BoundedNames((name) => ({
      state: table.add(LockMetric.LeaderState, { ...attributes, [Leadership]: name }),
      leading: 0,
    }));
  }

  locks(mode: LockMode, group: string): LockSeries<A> {
    const groups = entryOf(this.#locks, mode, () => new Map<string, LockSeries<A>>());
    const make = () => new LockSeries(this.table, { ...this.#attributes, [Mode]: mode, [Group]: group });
    return entryOf(groups, group, make);
  }

  /** Calls of `once` that have returned a result. */
  once(group: string): SeriesBy<A> {
    return entryOf(this.#once, group, () => {
      const series = new SeriesBy(this.table, LockMetric.OnceCalls, { ...this.#attributes, [Group]: group }, Outcome);
      for (const outcome of LOCK_METRICS[LockMetric.OnceCalls].values![Outcome]!) series.of(outcome);
      return series;
    });
  }

  /** The time that calls of one group have waited for holders of another one. */
  blocked(group: string, holderGroup: string): Series<A> {
    const make = () =>
      new SeriesBy(this.table, LockMetric.BlockedTime, { ...this.#attributes, [Group]: group }, HolderGroup);
    return entryOf(this.#blocked, group, make).of(holderGroup);
  }
}

/** The series of one singleton job. */
class JobSeries<A> {
  readonly attributes: A;
  readonly runs: SeriesBy<A>;
  readonly skipped: SeriesBy<A>;
  readonly missed: Series<A>;
  readonly lastSuccess: Series<A>;

  constructor(table: SeriesTable<A>, attributes: Attributes) {
    this.attributes = table.sink.attributesOf(attributes);
    this.runs = new SeriesBy(table, LockMetric.JobRuns, attributes, Outcome);
    this.skipped = new SeriesBy(table, LockMetric.JobSkipped, attributes, Reason);
    this.missed = table.add(LockMetric.JobMissed, attributes);
    this.lastSuccess = table.add(LockMetric.JobLastSuccess, attributes);
    for (const outcome of LOCK_METRICS[LockMetric.JobRuns].values![Outcome]!) this.runs.of(outcome);
    for (const reason of LOCK_METRICS[LockMetric.JobSkipped].values![Reason]!) this.skipped.of(reason);
  }
}

/**
 * One value for each name. Names that calls bring get the places that the registered names leave. All further names
 * share one value, `_other`.
 */
class BoundedNames<T> {
  readonly #known = new Map<string, T>();

  constructor(private readonly create: (name: string) => T) {}

  /** Reserves a place for a name that is known at the start. */
  register(name: string): T {
    // Exporters print control characters as they are, and so do tools that read what was scraped.
    const shown = escapeText(name);
    return entryOf(this.#known, shown, () => this.create(shown));
  }

  of(name: string): T {
    const known = this.#known.get(name) ?? this.#known.get(escapeText(name));
    return known ?? this.register(this.#known.size < MAX_GROUPS ? name : OTHER_GROUP);
  }
}
