import type { ClaimEnd, MissedSpan, Tick, TickClaim, TickReply } from './job-claims.js';
import type { OperatorRequest } from '../../../kernel/store/message-health.js';
import type { LockOwner } from '../../../kernel/store/lock-store.js';
import { LockStoreError } from '../../../kernel/store/store-error.js';
import type { OwedRun, JobPause, JobState } from './job-state.js';

/** The time for which a record outlives the next due tick, and the last command. */
export const JOB_KEEP_MS = 7 * 24 * 60 * 60 * 1000;
/** The maximum number of missed ticks that one command names. */
export const MAX_MISSED_AT_ONCE = 1_000;
/** The maximum number of timed pauses in a record. */
export const MAX_TIMED_PAUSES = 16;

/** The end of a run, from its process. */
export interface RunEnd {
  readonly fencingToken: number;
  /** `none`: it never began, so its entry is deleted. */
  readonly outcome: 'ok' | 'error' | 'lost' | 'none';
  readonly errorName?: string | undefined;
  readonly errorCode?: string | undefined;
  readonly errorMessage?: string | undefined;
}

/** Instances whose schedules differ for longer than this are not amid a deployment. */
export const DIFFER_MS = 60 * 60 * 1000;

/** A job as an instance registers it. */
export interface JobRegistration {
  /** The lock of the job. */
  readonly resource: string;
  /** See {@link ClaimMetadata.schedule}. */
  readonly schedule?: string | undefined;
  /** See {@link ClaimMetadata.next}. */
  readonly next?: number | undefined;
  /**
   * The single date of the job, in milliseconds since the Unix epoch. It takes the place of one that is registered, unless
   * that was due within `staysMs`: an instance that starts later may have computed another one.
   */
  readonly date?: { readonly at: number; readonly staysMs: number } | undefined;
}

/** Ticks that no instance claimed, as one instance has counted them. */
export interface MissedNote {
  readonly resource: string;
  /** See {@link ClaimMetadata.schedule}. If the record has another one, nothing is noted. */
  readonly schedule: string;
  /** The last accounted tick that the count began after. If it has moved since, nothing is noted. */
  readonly after: number;
  /** When they were due, the newest 1,000 of them, the oldest first. Not empty. */
  readonly ticks: readonly number[];
  /** The earlier ones: their number, the first and the last. */
  readonly earlier?: MissedSpan | undefined;
  readonly historySize: number;
  /** For `onMissed: 'runOnce'`: a catch-up is owed if the newest was due within this time. Not set: none is owed. */
  readonly runWithinMs?: number | undefined;
  /** See {@link ClaimMetadata.next}. */
  readonly next?: number | undefined;
}

/** The answer to {@link JobStore.note}. */
export type MissedReply =
  /**
   * This command accounted them. Ticks that were due during a pause are not counted, so `missed` is not set if there
   * are no others. `ticks` are the newest counted ones.
   */
  | {
      readonly status: 'noted';
      readonly missed?: MissedSpan & { readonly ticks: readonly number[] };
      readonly owed?: OwedRun;
      /** `true` if all of them were due while no instance had the job, because all had left. */
      readonly afterStop?: boolean;
    }
  /**
   * The last accounted tick, or the schedule, is another one: another instance noted them, or they were claimed. The
   * same instance is answered `noted` when it sends the same ticks again.
   */
  | { readonly status: 'stale'; readonly owed?: OwedRun };

export interface OperatorRequestChange {
  /** The expected state. Not set: there must be none. */
  readonly from?: string;
  /** The new state. Not set: it is only read. */
  readonly to?: string;
  /** For how long it is kept from now on, in milliseconds. */
  readonly ttlMs?: number;
  /** `true` to notify all instances of it by `StoreListener.asked`, even if the state was already so. */
  readonly tells?: boolean;
}

/**
 * Starts each tick once in the whole fleet. A run is granted together with the job's lock. So if a granted run has not
 * finished and the lock is free, the instance that had the run has died or lost its lease. Idempotent for the same
 * owner. A rejection is a `LockStoreError`.
 */
export interface JobClaims {
  claim(tick: Tick, claim: TickClaim): Promise<TickReply>;
  /**
   * Ends a claim, a run or both; the claim comes first. Idempotent.
   *
   * @param ended `claim`: the end of the tick's claim. `run`: the lock of the job is released, and the history notes
   * in the same step how the run ended
   * @param lazily no caller waits for the answer, so the command may leave together with the next one
   * @returns false if the run's owner did not hold the lock; then no lock was changed. Its end is noted all the same
   */
  end(
    owner: LockOwner,
    ended: { readonly claim?: ClaimEnd; readonly run?: RunEnd },
    lazily?: boolean,
  ): Promise<boolean>;
}

/**
 * The store of singleton jobs that core needs: their claims and records (history, pauses, missed ticks). Every method
 * but `list` and `register` is one atomic step for each job.
 */
export interface JobStore extends JobClaims {
  /**
   * The reason why this store has no job records, and the alternative. Then claims carry no note, and no run is
   * reported. Not set if it has them.
   */
  readonly refusal?: string;
  /** Accounts ticks that no instance claimed. Of all instances that report them, one gets `noted`. */
  note(missed: MissedNote): Promise<MissedReply>;
  /**
   * Returns the state of jobs. An unknown job has no runs and no instances.
   *
   * @param limit the maximum number of newest runs of each
   * @param instances the maximum number of last seen instances of each; 0 by default
   */
  look(resources: readonly string[], limit: number, instances?: number): Promise<JobState[]>;
  /**
   * Stops a job for the whole fleet, also one that is not known yet.
   *
   * @returns the pause that stood before; the new one takes its place
   */
  pause(resource: string, pause: Omit<JobPause, 'at'>): Promise<JobPause | undefined>;
  /**
   * Ends a pause. All ticks that were due until now are accounted.
   *
   * @returns the pause that stood, if there was one
   */
  resume(resource: string): Promise<JobPause | undefined>;
  /**
   * Makes jobs known, and notes that this instance has them. If a job has no record, or one with another schedule, all
   * ticks until now are accounted.
   *
   * @returns each job as it is then, without runs and instances
   */
  register(jobs: readonly JobRegistration[]): Promise<JobState[]>;
  /**
   * Notes that this instance no longer has these jobs, because it is shut down.
   *
   * Not set: this store cannot distinguish a shutdown of all instances from a crash.
   */
  leave?(resources: readonly string[]): Promise<void>;
  /**
   * Changes a request of an operator, in one step, if it is in the expected state or already in the new one.
   *
   * Not set: this store passes on no requests.
   *
   * @returns its state then; '' for none
   */
  request?(request: OperatorRequest, change: OperatorRequestChange): Promise<string>;
  /** The locks of all known jobs, in no order. `look` may find that some are no longer known. */
  list(): Promise<string[]>;
}

/**
 * Returns a job store without records.
 *
 * @param refusal the reason and the alternative; part of the error message
 * @param claims its claims
 */
export function withoutRecords(refusal: string, claims: JobClaims): JobStore {
  const refuse = (): Promise<never> => Promise.reject(new LockStoreError('refused', refusal));
  return {
    refusal,
    claim: (...args) => claims.claim(...args),
    end: (...args) => claims.end(...args),
    note: refuse,
    look: refuse,
    pause: refuse,
    resume: refuse,
    register: refuse,
    list: refuse,
  };
}
