import type { LockTelemetrySource } from '../core/events/telemetry.js';
import { escapeText } from '../core/util/quoted.js';
import { LockMetric } from './names.js';
import { type LockSeries, type MetricSink, type Series, SeriesTable } from './series.js';
import { ServiceSeries } from './service-series.js';
import type { LockMode } from '../core/api/lock-mode.js';
import { LEADER_PREFIX } from '../core/api/resource.js';
import type { LockEventOf, LockEventType } from '../core/events/events.js';
import type { RegisteredGroup } from '../core/events/observers.js';

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

const TYPES = [
  'acquired',
  'released',
  'waiting',
  'notAcquired',
  'lost',
  'transferred',
  'leftToExpire',
  'releaseFailed',
  'renewalFailed',
  'heldLong',
  'leaked',
  'slowLoop',
  'tickStarted',
  'tickFinished',
  'tickSkipped',
  'tickFailed',
  'tickMissed',
  'campaigning',
  'elected',
  'demoted',
] as const satisfies LockEventType[];

type Recorded = LockEventOf<(typeof TYPES)[number]>;

/** What one lock service adds to series that it may share with another of the same name. */
interface Share<A> {
  readonly series: LockSeries<A>;
  held: number;
  waiting: number;
}

/** Counts what the events of one lock service tell. A value that is counted here costs no call of a package. */
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

  /** @returns a function that ends it, when the lock service has closed */
  start(source: LockTelemetrySource): () => void {
    const stops = [
      source.onRegistered((registered) => this.#register(registered)),
      source.observe((event) => this.#record(event), TYPES),
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
  }

  // Counts first: a package that throws must not make a count wrong.
  #record(event: Recorded): void {
    switch (event.type) {
      case 'acquired': {
        const share = this.#shareOf(event);
        const { series } = share;
        series.acquired.value++;
        if (event.handedOn) series.handOvers.value++;
        if (event.hasWaited) this.#addWaiting(share, -1);
        this.#addHeld(share, 1);
        // A candidate waits for as long as another leads.
        if (event.resource.startsWith(LEADER_PREFIX)) return;
        return this.#sink.record(LockMetric.WaitTime, event.waitedMs / 1000, series.attributes);
      }
      case 'released':
      case 'transferred':
        return this.#ended(event);
      case 'waiting':
        return this.#addWaiting(this.#shareOf(event), 1);
      case 'notAcquired': {
        const share = this.#shareOf(event);
        share.series.notAcquired(event.error).value++;
        if (!event.hasWaited) return;
        this.#addWaiting(share, -1);
        return this.#sink.record(LockMetric.WaitTime, event.waitedMs / 1000, share.series.attributes);
      }
      case 'lost':
        this.#shareOf(event).series.lost(event.reason).value++;
        return this.#ended(event);
      case 'releaseFailed':
        this.#shareOf(event).series.releaseFailures.of(event.error.code).value++;
        return event.isEnd ? this.#ended(event) : undefined;
      case 'leftToExpire':
        // It lasts on without this process: how long it was held is not known.
        return this.#addHeld(this.#shareOf(event), -1);
      case 'renewalFailed':
        this.#shareOf(event).series.renewalFailures.of(event.error.code).value++;
        return;
      case 'heldLong':
        this.#shareOf(event).series.heldLong.value++;
        return;
      case 'slowLoop':
        this.service.slowLoops.value++;
        return;
      case 'leaked':
        this.#shareOf(event).series.leaked.value++;
        return;
      default:
        return this.#recordFeature(event);
    }
  }

  #recordFeature(
    event: LockEventOf<
      `tick${'Started' | 'Finished' | 'Skipped' | 'Failed' | 'Missed'}` | 'campaigning' | 'elected' | 'demoted'
    >,
  ): void {
    const { jobs, leaderships } = this.service;
    switch (event.type) {
      case 'tickStarted':
        if (event.delayMs === undefined) return void jobs.of(event.job);
        // The clock of this process may be behind.
        return this.#sink.record(
          LockMetric.JobStartDelay,
          Math.max(0, event.delayMs) / 1000,
          jobs.of(event.job).attributes,
        );
      case 'tickFinished': {
        const job = jobs.of(event.job);
        job.runs.of(event.outcome).value++;
        if (event.outcome === 'ok') job.lastSuccess.value = this.now() / 1000;
        return this.#sink.record(LockMetric.JobDuration, event.ranMs / 1000, job.attributes);
      }
      case 'tickSkipped':
        jobs.of(event.job).skipped.of(event.reason).value++;
        return;
      case 'tickFailed':
        jobs.of(event.job).skipped.of('failed').value++;
        return;
      case 'tickMissed':
        jobs.of(event.job).missed.value += event.count;
        return;
      case 'campaigning':
        leaderships.of(event.leadership);
        return;
      case 'elected':
        return this.#addLeading(event.leadership, 1);
      case 'demoted':
        return this.#addLeading(event.leadership, -1);
    }
  }

  #ended(event: LockEventOf<'released' | 'transferred' | 'lost' | 'releaseFailed'>): void {
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

  /** Takes back what the lock service still held, and still waited for, when it closed. */
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
