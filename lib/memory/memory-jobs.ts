import type { Clock } from '../core/util/clock.js';
import { ExpiringMap } from '../core/util/expiring-map.js';
import {
  catchUpOf,
  JOB_KEEP_MS,
  type JobPause,
  type OwedRun,
  type StoredRun,
  type TimedPause,
} from '../core/store/job-store.js';
import type { MissedSpan } from '../core/store/job-claims.js';

/** What is known of one job, as in Redis; see lua/include/job-record.lua. */
export interface MemoryJob {
  schedule?: string | undefined;
  /** When its next tick is due. */
  next?: number | undefined;
  /** When an instance that has this schedule last told when the next tick is due. */
  stated?: number | undefined;
  missed: number;
  /** When it became known, until something is claimed. Only the tick that was due last before may still be claimed. */
  since?: number | undefined;
  /** The last missed ticks: the accounted tick before them, the last of them, and the instance that noted them. */
  told?: string;
  lastSuccessAt?: number;
  /** The catch-up that no instance has begun: when the last of its ticks was due. */
  owed?: number | undefined;
  /** The last catch-up. */
  span?: MissedSpan & Pick<OwedRun, 'until'>;
  /** The pauses that end by themselves, the oldest first. */
  timedPauses: readonly TimedPause[];
  /** The newest first. */
  runs: StoredRun[];
  readonly instances: Map<string, number>;
}

/** To a minute, as in Redis. */
const SEEN_MS = 60_000;

/** What the server keeps of jobs, by the lock of each. */
export class MemoryJobs {
  readonly pauses: ExpiringMap<JobPause>;
  /** The jobs that an instance has registered or paused, until a look finds that nothing is left of one. */
  readonly index = new Set<string>();
  readonly #jobs: ExpiringMap<MemoryJob>;

  constructor(private readonly clock: Clock) {
    this.#jobs = new ExpiringMap(clock);
    this.pauses = new ExpiringMap(clock);
  }

  get(resource: string): MemoryJob | undefined {
    return this.#jobs.get(resource);
  }

  /**
   * The job, which is kept until a time after its next tick, and never shorter than before.
   *
   * @param next when its next tick is due
   */
  keep(resource: string, next: number | undefined): MemoryJob {
    const job = this.get(resource) ?? { missed: 0, timedPauses: [], runs: [], instances: new Map<string, number>() };
    this.#jobs.lengthen(resource, job, this.keepMs(next));
    return job;
  }

  keepMs(next: number | undefined): number {
    return Math.max(0, (next ?? 0) - this.clock.wallNow()) + JOB_KEEP_MS;
  }

  /** How long it is kept still. */
  leftMs(resource: string): number {
    return this.#jobs.ttlMs(resource);
  }

  noteInstance(job: MemoryJob, instance: string): void {
    const now = this.clock.wallNow();
    const seenAt = job.instances.get(instance);
    if (seenAt !== undefined && seenAt > now - SEEN_MS) return;
    job.instances.delete(instance);
    job.instances.set(instance, now);
    const [[oldest, oldestAt]] = job.instances as unknown as [[string, number]];
    if (oldestAt < now - JOB_KEEP_MS || job.instances.size > 1_000) job.instances.delete(oldest);
  }

  /** The catch-up that no instance has begun, unless its time is over. */
  owedOf(job: MemoryJob | undefined): (MissedSpan & Pick<OwedRun, 'until'>) | undefined {
    const { owed, span } = job ?? {};
    return owed !== undefined && span && span.until >= this.clock.wallNow() ? span : undefined;
  }
}

/** Adds runs to the history, the oldest first. */
export function addRuns(job: MemoryJob, historySize: number, ...runs: readonly StoredRun[]): void {
  job.runs = [...runs.toReversed(), ...job.runs].slice(0, historySize);
}

/** Deletes the newest run of a tick, if it has not ended. */
export function dropOpenRun(job: MemoryJob | undefined, tick: string): void {
  const index = job?.runs.findIndex((run) => run.tick === tick) ?? -1;
  if (index >= 0 && job!.runs[index]!.outcome === undefined) job!.runs.splice(index, 1);
}

/** The newest run of a tick was granted, and never began. A catch-up is owed again. */
export function forgetRun(job: MemoryJob | undefined, tick: string): void {
  if (!job) return;
  dropOpenRun(job, tick);
  const owed = catchUpOf(tick);
  if (owed !== undefined && job.owed === undefined && job.span?.last === owed) job.owed = owed;
}
