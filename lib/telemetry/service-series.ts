import type { LockMode } from '../core/api/lock-mode.js';
import { BoundedNames } from './bounded-names.js';
import { JobSeries } from './job-series.js';
import { LockSeries } from './lock-series.js';
import { LockAttribute, LockMetric } from './names.js';
import { type Attributes, type Series, SeriesBy, type SeriesTable } from './series.js';

const { Group, HolderGroup, Job, Leadership, Mode, Service } = LockAttribute;

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
