import type { ClaimEnd, MissedSpan, ScheduleOfOther, Tick, TickClaim, TickReply } from './job-claims.js';
import type { OperatorRequest } from '../../../kernel/store/message-health.js';
import type { LockOwner } from '../../../kernel/store/lock-store.js';
import { LockStoreError } from '../../../kernel/store/store-error.js';

/** One entry in the history of a job. All times are by the clock of Redis, in milliseconds since the Unix epoch. */
interface RunRecord {
  /** Which tick; of a cron job the time it was scheduled for, as an ISO string. */
  readonly tick: string;
  /** The time of the grant. For a missed tick: the time at which it was noticed. */
  readonly startedAt: number;
  /** Not set while it runs, of a crashed run and of a missed tick. */
  readonly endedAt?: number;
  /**
   * The outcome. `lost`: its lease was lost before it ended. `crashed`: its process reported no end, and the lease has
   * expired. `missed`: no run, because no instance claimed the tick. Not set while it runs.
   */
  readonly outcome?: 'ok' | 'error' | 'lost' | 'crashed' | 'missed';
  /** The instance that ran it, or noticed a missed tick. */
  readonly instanceId: string;
  /** `true` if the run was granted to another instance before, which may have begun it and did not finish it. */
  readonly rerun: boolean;
  /** Which run of the tick it was: 1 for the first one, 2 for the first rerun. Not set of a missed tick. */
  readonly attempt?: number;
  /** `true` if it was requested with `runNow`. */
  readonly manual: boolean;
  /** `true` if it was the one run for all missed ticks. */
  readonly catchUp: boolean;
  /** The fencing token of its lease. Not set of a missed tick. */
  readonly fencingToken?: number;
  /** The name of the error that the work threw, of at most 100 bytes. */
  readonly errorName?: string;
  /** The `code` of that error, of at most 100 bytes. */
  readonly errorCode?: string;
  /** Its message, of at most 200 bytes. Only with the option `historyMessages`. */
  readonly errorMessage?: string;
}

/** The text of the catch-up for missed ticks, as `tick` of its claim. @param last when the last of them was due */
export function catchUpTick(last: number): string {
  return `catch-up:${new Date(last).toISOString()}`;
}

/** When the last of the missed ticks was due whose catch-up has this text; `undefined` for other ticks. */
export function catchUpOf(tick: string): number | undefined {
  const [, time] = /^catch-up:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/.exec(tick) ?? [];
  return time === undefined ? undefined : Date.parse(time);
}

/** A catch-up that no instance has begun. */
interface OwedRun extends MissedSpan {
  /** The tick to claim: `catch-up:` and the ISO time at which the last of them was due. */
  readonly tick: string;
  /** It is not granted any more after this, in milliseconds since the Unix epoch. */
  readonly until: number;
}

/** A pause of a job for the whole fleet. */
export interface JobPause {
  /** Since when, in milliseconds since the Unix epoch, by the clock of Redis. */
  readonly at: number;
  /** The requester, in the caller's words. */
  readonly by?: string;
  /** Why, in the words of the caller. */
  readonly reason?: string;
  /** When it ends by itself, in milliseconds since the Unix epoch. Not set: when the job is resumed. */
  readonly until?: number;
}

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

/** An instance that has a job, and when it last registered or claimed a tick, in milliseconds since the Unix epoch. */
interface JobInstance {
  readonly instanceId: string;
  /** To a minute. */
  readonly seenAt: number;
}

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

/** When a job was paused, with both ends, in milliseconds since the Unix epoch. */
export interface TimedPause {
  readonly from: number;
  readonly until: number;
}

/** The stored state of a job at one moment. Times are in milliseconds since the Unix epoch. */
export interface JobState {
  /** The lock of the job. */
  readonly resource: string;
  /** `true` if there is a record, a pause or a history. */
  readonly isKnown: boolean;
  /** The time of the store. */
  readonly now: number;
  /** See {@link ClaimMetadata.schedule}. */
  readonly schedule?: string;
  /** Another schedule by which an instance came to a tick while this one was in force: since when, and when last. */
  readonly other?: ScheduleOfOther & { readonly since: number; readonly seenAt: number };
  /** The time of the next tick, from the last instance that claimed or registered. */
  readonly next?: number;
  /**
   * The time at which an instance last reported the next tick: by a claim, or by the registration of its schedule. For
   * a job whose ticks have no order: the time of the last claim, or of the first registration.
   */
  readonly statedAt?: number;
  /**
   * The last accounted tick: claimed, paused, or reported as missed. No tick up to this is ever granted. Not set: none
   * is known, so none was missed.
   */
  readonly last?: number;
  /** The number of missed ticks since the record began. */
  readonly missed: number;
  /** The end of the last successful run. */
  readonly lastSuccessAt?: number;
  readonly owed?: OwedRun;
  readonly pause?: JobPause;
  /**
   * Timed pauses, also after their end, the oldest first. A new one drops pauses that ended before the last accounted
   * tick, and keeps at most 16.
   */
  readonly timedPauses?: readonly TimedPause[];
  /** The run that holds the job's lock. */
  readonly running?: RunRecord;
  /** The newest runs first, at most as many as were asked for. */
  readonly runs: readonly RunRecord[];
  /** The last seen first, at most as many as were asked for. */
  readonly instances: readonly JobInstance[];
  /** The number of instances; 0 if none were asked for. */
  readonly instanceCount: number;
}

/**
 * Starts each tick once in the whole fleet. Claiming the tick and taking the job's lock are one atomic step: if a tick
 * is claimed and the lock is free, the runner is dead. Idempotent by owner. A rejection is a `LockStoreError`.
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
 * Reads the history. A run without an end holds the lock of the job, or it crashed.
 *
 * @param stored as a store keeps it, the newest first: it does not record that a process died
 * @param token the fencing token of the lock's holder, if there is one
 */
export function readHistory(
  stored: readonly RunRecord[],
  token: number | undefined,
  limit: number,
): { runs: RunRecord[]; running?: RunRecord } {
  const runs = stored.map((run): RunRecord => {
    const isOpen = run.outcome === undefined && run.fencingToken !== token;
    return isOpen ? { ...run, outcome: 'crashed' } : run;
  });
  const running = runs.find(({ outcome }) => outcome === undefined);
  return { runs: runs.slice(0, limit), ...(running && { running }) };
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
