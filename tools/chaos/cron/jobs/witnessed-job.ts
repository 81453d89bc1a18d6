import { jobResource } from '../../../../lib/core/api/resource.js';
import { catchUpOf, type MissedSpan, type RunRecord } from '../../../../lib/core/store/job-store.js';
import { EverySoOften, type RememberedJob } from './simulated-record.js';

/** A run, or a missed tick, as the witness saw it. Without an end, it crashed or still holds the lock. */
export interface SeenRun extends RunRecord {
  /** The secret id of the owner; '' of a missed tick. */
  readonly owner: string;
}

interface SeenPause {
  readonly at: number;
  /** When it ends by itself, was resumed, or was forgotten. */
  end: number;
}

/** What is certain of a job: what the witness saw of it at the store. */
export class WitnessedJob {
  readonly resource: string;
  schedule: EverySoOften | undefined;
  /** All ticks up to this one are claimed, told as missed, due during a pause, or from before the job was known. */
  through: number | undefined;
  readonly claimed = new Set<number>();
  readonly missed = new Set<number>();
  missedCount = 0;
  /** Which instance told which missed ticks last. */
  lastTelling = '';
  /** The newest first. */
  runs: SeenRun[] = [];
  readonly pauses: SeenPause[] = [];
  /** The missed ticks that one run is owed for, when that is over, and since when. */
  debt: (MissedSpan & { readonly until: number; readonly since: number }) | undefined;
  /** The debt of the last catch-up that was granted: it comes back where the run never began. */
  paid: WitnessedJob['debt'];
  lastSuccessAt: number | undefined;

  constructor(readonly job: RememberedJob) {
    this.resource = jobResource(job.name);
  }

  isPaused(time: number): boolean {
    const last = this.pauses.at(-1);
    return last !== undefined && time >= last.at && time < last.end;
  }

  wasPausedAt(tick: number): boolean {
    return this.pauses.some(({ at, end }) => tick >= at && tick <= end);
  }

  /** The last pause is over. */
  endPause(now: number): void {
    const last = this.pauses.at(-1);
    if (last && last.end > now) last.end = now;
  }

  /** The store counts from here: nothing before was missed. */
  beginsAt(time: number): void {
    this.through = Math.max(this.through ?? 0, time);
  }

  add(...runs: readonly SeenRun[]): void {
    this.runs = [...runs.toReversed(), ...this.runs].slice(0, this.job.historySize);
  }

  /** The newest run of a tick, if it has not ended and is of this owner. */
  openRun(tick: string, owner: string): SeenRun | undefined {
    const newest = this.runs.find((run) => run.tick === tick);
    return newest?.owner === owner && newest.outcome === undefined ? newest : undefined;
  }

  drop(run: SeenRun): void {
    this.runs = this.runs.filter((each) => each !== run);
  }

  /** A catch-up was granted, and never began. */
  oweAgain(tick: string): void {
    if (!this.debt && this.paid && this.paid.last === catchUpOf(tick)) this.debt = this.paid;
  }
}
