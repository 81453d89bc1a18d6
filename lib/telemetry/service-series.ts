import { OTHER_GROUP } from '../core/api/label.js';
import type { LockMode } from '../core/api/lock-mode.js';
import { MAX_GROUPS } from '../core/events/observers.js';
import { escapeText } from '../core/util/quoted.js';
import { type Attributes, LockSeries, type Series, SeriesBy, type SeriesTable } from './series.js';
import { LOCK_METRICS, LockAttribute, LockMetric } from './names.js';

const { Group, HolderGroup, Job, Leadership, Mode, Outcome, Reason, Service } = LockAttribute;

/** The series of a leadership, and how many campaigns of this process lead. There are two for a moment at a change. */
export interface LeaderSeries<A> {
  readonly state: Series<A>;
  leading: number;
}

/** The series of all lock services of one name: also of one that has closed, whose counters must not go back. */
export class ServiceSeries<A> {
  readonly slowLoops: Series<A>;
  readonly jobs: BoundedNames<JobSeries<A>>;
  readonly leaderships: BoundedNames<LeaderSeries<A>>;
  /** By mode, then by group. Core bounds the groups. */
  readonly #locks = new Map<LockMode, Map<string, LockSeries<A>>>();
  /** By the group that waits, then by the group of the holder. Core bounds both. */
  readonly #blocked = new Map<string, SeriesBy<A>>();
  readonly #attributes: Attributes;

  constructor(
    private readonly table: SeriesTable<A>,
    service: string,
  ) {
    const attributes = { [Service]: service };
    this.#attributes = attributes;
    this.slowLoops = table.add(LockMetric.SlowLoops, attributes);
    this.jobs = new BoundedNames((name) => new JobSeries(table, { ...attributes, [Job]: name }));
    this.leaderships = new BoundedNames((name) => ({
      state: table.add(LockMetric.LeaderState, { ...attributes, [Leadership]: name }),
      leading: 0,
    }));
  }

  locks(mode: LockMode, group: string): LockSeries<A> {
    let groups = this.#locks.get(mode);
    if (groups === undefined) this.#locks.set(mode, (groups = new Map()));
    let series = groups.get(group);
    if (series === undefined) {
      series = new LockSeries(this.table, { ...this.#attributes, [Mode]: mode, [Group]: group });
      groups.set(group, series);
    }
    return series;
  }

  /** How long calls of one group have waited for holders of another one. */
  blocked(group: string, holderGroup: string): Series<A> {
    let series = this.#blocked.get(group);
    if (series === undefined) {
      const attributes = { ...this.#attributes, [Group]: group };
      series = new SeriesBy(this.table, LockMetric.BlockedTime, attributes, HolderGroup);
      this.#blocked.set(group, series);
    }
    return series.of(holderGroup);
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
 * One value for each name. Names that come with calls get the places that the registered names leave. All further names
 * share one value, `_other`.
 */
class BoundedNames<T> {
  readonly #known = new Map<string, T>();

  constructor(private readonly create: (name: string) => T) {}

  /** For a name that the program has. */
  register(name: string): T {
    // Exporters print control characters as they are, and so do tools that read what was scraped.
    const shown = escapeText(name);
    let known = this.#known.get(shown);
    if (known === undefined) this.#known.set(shown, (known = this.create(shown)));
    return known;
  }

  of(name: string): T {
    const known = this.#known.get(name) ?? this.#known.get(escapeText(name));
    return known ?? this.register(this.#known.size < MAX_GROUPS ? name : OTHER_GROUP);
  }
}
