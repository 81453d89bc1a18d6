import type { LockError } from '../core/api/errors.js';
import { type AcquireOutcome, CODES_WITH_OUTCOME, outcomeOfCode } from '../core/events/outcomes.js';
import { LOCK_METRICS, LockAttribute, LockMetric } from './names.js';
import { type Attributes, type Series, SeriesBy, type SeriesTable } from './series.js';

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
