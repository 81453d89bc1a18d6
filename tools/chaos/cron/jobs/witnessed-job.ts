import { jobResource } from '../../../../lib/kernel/api/resource.js';
import type { TickReply, MissedSpan } from '../../../../lib/features/jobs/core/job-claims.js';
import { EverySoOften, type RememberedJob } from './simulated-record.js';
import { type JobState, catchUpOf } from '../../../../lib/features/jobs/core/job-state.js';

type Run = JobState['runs'][number];

/** A run, or a missed tick, as the witness saw it. Without an end, it crashed or still holds the lock. */
export interface SeenRun extends Run {
  /** The secret id of the owner; '' of a missed tick. */
  readonly owner: string;
}

interface SeenPause {
  readonly at: number;
  /** When it ends by itself, was resumed, or was forgotten. */
  end: number;
}

/** The certain facts of a job, as the witness saw them at the store. */
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
  /** Which owner has a tick, and until when the store remembers one that was given back. */
  readonly #holders = new Map<string, { readonly owner: string; readonly hasBegun: boolean }>();
  readonly #returned = new Map<string, { readonly until: number; readonly hasBegun: boolean }>();
  /** The newest first. */
  runs: SeenRun[] = [];
  readonly pauses: SeenPause[] = [];
  /** The missed ticks that one catch-up run is owed for, its deadline, and its start. */
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

  /** Returns true if the job is still in the pause in which a tick was due. */
  isPausedSince(tick: number, now: number): boolean {
    return this.isPaused(now) && tick >= this.pauses.at(-1)!.at;
  }

  wasPausedAt(tick: number): boolean {
    return this.pauses.some(({ at, end }) => tick >= at && tick <= end);
  }

  /** Ends the current pause. */
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

  /** The store has answered a claim: which owner has the tick then. */
  answered(tick: string, owner: string, reply: TickReply): void {
    const { hasBegun = false } = this.#returned.get(tick) ?? this.#holders.get(tick) ?? {};
    if (reply.status === 'granted') this.#holders.set(tick, { owner, hasBegun: reply.attempt > 1 });
    else if (reply.status === 'claimed') this.#holders.set(tick, { owner, hasBegun });
    else if (reply.status === 'paused' || reply.status === 'overlap') this.#holders.delete(tick);
    else return;
    this.#returned.delete(tick);
  }

  /** The owner never begins the run. @returns whether it had the tick: then any instance may have it until a time */
  giveBack(tick: string, owner: string, until: number): boolean {
    const holder = this.#holders.get(tick);
    const isHolder = holder?.owner === owner;
    if (isHolder) {
      this.#holders.delete(tick);
      this.#returned.set(tick, { until, hasBegun: holder.hasBegun });
      this.dropUnbegun(tick, owner);
    }
    return isHolder;
  }

  /** Records the end of the run that its owner began. */
  finish(tick: string, owner: string): void {
    if (this.#holders.get(tick)?.owner === owner) this.#holders.delete(tick);
  }

  /** A tick that was given back, which any instance may have. `hasBegun`: another owner may have begun it before. */
  returned(tick: string, now: number): { readonly hasBegun: boolean } | undefined {
    const returned = this.#returned.get(tick);
    return returned && returned.until > now ? returned : undefined;
  }

  /** A run was granted to this owner, and never began. A catch-up is owed again. */
  dropUnbegun(tick: string, owner: string): void {
    const run = this.openRun(tick, owner);
    if (!run) return;
    this.drop(run);
    if (!this.debt && this.paid && this.paid.last === catchUpOf(tick)) this.debt = this.paid;
  }
}
