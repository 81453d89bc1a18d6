import type { LockMode } from '../core/api/lock-mode.js';
import { BoundedNames } from './bounded-names.js';
import { JobSeries } from './job-series.js';
import { LockSeries } from './lock-series.js';
import { LockAttribute, LockMetric } from './names.js';
import type { Attributes, Series, SeriesTable } from './series.js';

const { Group, Job, Leadership, Mode, Service } = LockAttribute;

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
}
