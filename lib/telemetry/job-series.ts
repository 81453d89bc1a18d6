import { LOCK_METRICS, LockAttribute, LockMetric } from './names.js';
import { type Attributes, type Series, SeriesBy, type SeriesTable } from './series.js';

const { Outcome, Reason } = LockAttribute;

/** The series of one singleton job. */
export class JobSeries<A> {
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
