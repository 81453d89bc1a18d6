import { entryOf } from '../../kernel/util/objects.js';
import type { LockTelemetrySource } from '../../kernel/events/telemetry.js';
import { escapeText } from '../../kernel/util/quoted.js';
import { LockMetric } from './names.js';
import { type LockSeries, type MetricSink, type Series, SeriesTable, ServiceSeries } from './series.js';
import type { LockMode } from '../../kernel/api/lock-mode.js';
import { LEADER_PREFIX } from '../../kernel/api/resource.js';
import type { LockEventOf } from '../../kernel/events/events.js';
import { type EventTable, observeBy, type RegisteredGroup } from '../../kernel/events/observers.js';

/** The metrics of one meter or registry, for every lock service that reports to it. */
export class LockMetrics<A> {
  readonly #table: SeriesTable<A>;
  readonly #services = new Map<string, ServiceSeries<A>>();
  /** The sources that report here. If `telemetry` names the same metrics twice, they must not count twice. */
  readonly #sources = new WeakSet<LockTelemetrySource>();

  constructor(
    sink: MetricSink<A>,
    private readonly now: () => number = Date.now,
  ) {
    this.#table = new SeriesTable(sink);
  }

  /** The current series of a metric that is no histogram. */
  seriesOf(metric: LockMetric): readonly Series<A>[] {
    return this.#table.of(metric);
  }

  /** @returns a function to call when the lock service has closed */
  start(source: LockTelemetrySource): () => void {
    if (this.#sources.has(source)) return () => {};
    this.#sources.add(source);
    const name = escapeText(source.service);
    const service = entryOf(this.#services, name, () => new ServiceSeries(this.#table, name));
    const stop = new Recorder(this.#table, service, this.now).start(source);
    return () => {
      this.#sources.delete(source);
      stop();
    };
  }
}

/** The part of one lock service in series that it may share with another of the same name. */
interface Share<A> {
  readonly series: LockSeries<A>;
  held: number;
  waiting: number;
}

/** Counts the events of one lock service. Its counters cost no call of a metrics package until they are collected. */
class Recorder<A> {
  /** By mode, then by group. */
  readonly #shares = new Map<LockMode, Map<string, Share<A>>>();
  readonly #leading = new Map<string, number>();
  readonly #sink: MetricSink<A>;

  constructor(
    table: SeriesTable<A>,
    private readonly service: ServiceSeries<A>,
    private readonly now: () => number,
  ) {
    this.#sink = table.sink;
  }

  /** @returns a function to call when the lock service has closed */
  start(source: LockTelemetrySource): () => void {
    const stops = [
      source.onRegistered((registered) => this.#register(registered)),
      observeBy(this.#table, (...each) => source.observe(...each)),
      source.onBlocked(({ group, holderGroup, waitedMs }) => {
        this.service.blocked(group, holderGroup).value += waitedMs / 1000;
      }),
    ];
    return () => {
      for (const stop of stops) stop();
      this.#close();
    };
  }

  #register({ kind, name, mode, group }: RegisteredGroup): void {
    this.service.locks(mode, group).complete();
    if (kind === 'job') this.service.jobs.register(name);
    else if (kind === 'leadership') this.service.leaderships.register(name);
    else if (kind === 'once') this.service.once(group);
  }

  // Counts first: a package that throws must not make a count wrong.
  readonly #table: EventTable = {
    acquired: (event) => {
      const share = this.#shareOf(event);
      const { series } = share;
      series.acquired.value++;
      if (event.handedOn) series.handOvers.value++;
      if (event.hasWaited) this.#addWaiting(share, -1);
      this.#addHeld(share, 1);
      // A candidate waits for as long as another instance leads, so its wait is no measure.
      if (event.resource.startsWith(LEADER_PREFIX)) return;
      this.#sink.record(LockMetric.WaitTime, event.waitedMs / 1000, series.attributes);
    },
    released: (event) => this.#ended(event),
    waiting: (event) => this.#addWaiting(this.#shareOf(event), 1),
    notAcquired: (event) => {
      const share = this.#shareOf(event);
      share.series.notAcquired(event.error).value++;
      if (!event.hasWaited) return;
      this.#addWaiting(share, -1);
      this.#sink.record(LockMetric.WaitTime, event.waitedMs / 1000, share.series.attributes);
    },
    lost: (event) => {
      this.#shareOf(event).series.lost.of(event.reason).value++;
      this.#ended(event);
    },
    // The lease continues without this process, so its hold time is unknown.
    leaseAbandoned: (event) => this.#addHeld(this.#shareOf(event), -1),
    releaseFailed: (event) => {
      this.#shareOf(event).series.releaseFailures.of(event.error.code).value++;
      if (event.isEnd) this.#ended(event);
    },
    renewalFailed: (event) => void this.#shareOf(event).series.renewalFailures.of(event.error.code).value++,
    heldLong: (event) => void this.#shareOf(event).series.heldLong.value++,
    leaked: (event) => void this.#shareOf(event).series.leaked.value++,
    eventLoopBlocked: () => void this.service.eventLoopBlocked.value++,
    onceReturned: ({ group, outcome }) => void this.service.once(group).of(outcome).value++,
    tickStarted: ({ job, delayMs }) => {
      const { attributes } = this.service.jobs.of(job);
      if (delayMs === undefined) return;
      // The clock of this process may be behind.
      this.#sink.record(LockMetric.JobStartDelay, Math.max(0, delayMs) / 1000, attributes);
    },
    tickFinished: (event) => {
      const job = this.service.jobs.of(event.job);
      job.runs.of(event.outcome).value++;
      if (event.outcome === 'ok') job.lastSuccess.value = this.now() / 1000;
      this.#sink.record(LockMetric.JobDuration, event.ranMs / 1000, job.attributes);
    },
    tickSkipped: ({ job, reason }) => void this.service.jobs.of(job).skipped.of(reason).value++,
    tickFailed: ({ job }) => void this.service.jobs.of(job).skipped.of('failed').value++,
    tickMissed: ({ job, count }) => void (this.service.jobs.of(job).missed.value += count),
    campaigning: ({ leadership }) => void this.service.leaderships.of(leadership),
    elected: ({ leadership }) => this.#addLeading(leadership, 1),
    demoted: ({ leadership }) => this.#addLeading(leadership, -1),
  };

  #ended(event: LockEventOf<'released' | 'lost' | 'releaseFailed'>): void {
    const share = this.#shareOf(event);
    this.#addHeld(share, -1);
    this.#sink.record(LockMetric.HoldTime, event.heldMs / 1000, share.series.attributes);
  }

  #addHeld(share: Share<A>, change: number): void {
    share.held += change;
    share.series.held.value += change;
  }

  #addWaiting(share: Share<A>, change: number): void {
    share.waiting += change;
    share.series.waiting.value += change;
  }

  #addLeading(leadership: string, change: number): void {
    const series = this.service.leaderships.of(leadership);
    this.#leading.set(leadership, (this.#leading.get(leadership) ?? 0) + change);
    series.leading += change;
    series.state.value = series.leading > 0 ? 1 : 0;
  }

  #shareOf({ mode, group }: { readonly mode: LockMode; readonly group: string }): Share<A> {
    let groups = this.#shares.get(mode);
    if (groups === undefined) this.#shares.set(mode, (groups = new Map()));
    let share = groups.get(group);
    if (share === undefined) {
      share = { series: this.service.locks(mode, group), held: 0, waiting: 0 };
      groups.set(group, share);
    }
    return share;
  }

  /** Subtracts the holds and waits that the lock service still had when it closed. */
  #close(): void {
    for (const groups of this.#shares.values()) {
      for (const share of groups.values()) {
        this.#addHeld(share, -share.held);
        this.#addWaiting(share, -share.waiting);
      }
    }
    for (const [leadership, leading] of this.#leading) this.#addLeading(leadership, -leading);
  }
}
