import type { ClaimEnd, MissedSpan, ScheduleOfOther, Tick, TickClaim, TickReply } from './job-claims.js';
import type { OperatorRequest } from '../../../kernel/store/message-health.js';
import type { LockOwner } from '../../../kernel/store/lock-store.js';
import { LockStoreError } from '../../../kernel/store/store-error.js';

/** One entry in the history of a job. All times are by the clock of Redis, in milliseconds since the Unix epoch. */
interface RunRecord {
  /** Which tick; of a cron job the time it was scheduled for, as an ISO string. */
  readonly tick: string;
  /** When the run was granted. Of a missed tick: when it was noticed. */
  readonly startedAt: number;
  /** Not set while it runs, of a crashed run and of a missed tick. */
  readonly endedAt?: number;
  /**
   * How it ended. `lost`: its lease was lost before it ended. `crashed`: its process told no end, and the lease is over.
   * `missed`: no run, because no instance claimed the tick. Not set while it runs.
   */
  readonly outcome?: 'ok' | 'error' | 'lost' | 'crashed' | 'missed';
  /** The instance that ran it. Of a missed tick: the one that noticed. */
  readonly instanceId: string;
  /** Whether the run was granted to another instance before, which may have begun it and did not finish it. */
  readonly rerun: boolean;
  /** Which run of the tick it was: 1 for the first one, 2 for the first rerun. Not set of a missed tick. */
  readonly attempt?: number;
  /** Whether it was asked for with `runNow`. */
  readonly manual: boolean;
  /** Whether it was the one run for all ticks that were missed. */
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
  /** What to claim: `catch-up:` and the ISO time at which the last of them was due. */
  readonly tick: string;
  /** It is not granted any more after this, in milliseconds since the Unix epoch. */
  readonly until: number;
}

/** That a job is stopped for the whole fleet. */
export interface JobPause {
  /** Since when, in milliseconds since the Unix epoch, by the clock of Redis. */
  readonly at: number;
  /** Who asked for it, in the words of the caller. */
  readonly by?: string;
  /** Why, in the words of the caller. */
  readonly reason?: string;
  /** When it ends by itself, in milliseconds since the Unix epoch. Not set: when the job is resumed. */
  readonly until?: number;
}

/** How long a record outlives the next tick that is due, and the time of the last command. */
export const JOB_KEEP_MS = 7 * 24 * 60 * 60 * 1000;
/** How many missed ticks one command names at most. */
export const MAX_MISSED_AT_ONCE = 1_000;
/** How many pauses that end by themselves a record keeps at most. */
export const MAX_TIMED_PAUSES = 16;

/** How a run ended, as its process tells the store. */
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
  /** The last accounted tick that the count began after. If it has moved on meanwhile, nothing is noted. */
  readonly after: number;
  /** When they were due, the newest 1,000 of them, the oldest first. Not empty. */
  readonly ticks: readonly number[];
  /** How many were due before those, and when the first and the last of them. */
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
   * They are accounted, by this command. Ticks that were due during a pause are not counted, so `missed` is not set if
   * there are no others. `ticks` are the newest of those that count.
   */
  | {
      readonly status: 'noted';
      readonly missed?: MissedSpan & { readonly ticks: readonly number[] };
      readonly owed?: OwedRun;
      /** Whether all of them were due while no instance had the job, because all of them had left. */
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

/** What becomes of a request. */
export interface OperatorRequestChange {
  /** What it must be now. Not set: there must be none. */
  readonly from?: string;
  /** What it becomes. Not set: it is only read. */
  readonly to?: string;
  /** For how long it is kept from now on, in milliseconds. */
  readonly keepMs?: number;
  /** Whether all instances are told that it is there, by `StoreListener.asked`: also where it is so already. */
  readonly tells?: boolean;
}

/** When a job was paused, with both ends, in milliseconds since the Unix epoch. */
export interface TimedPause {
  readonly from: number;
  readonly until: number;
}

/** What the store knows of a job, at one moment. Times are in milliseconds since the Unix epoch. */
export interface JobState {
  /** The lock of the job. */
  readonly resource: string;
  /** Whether there is a record, a pause or a history. */
  readonly isKnown: boolean;
  /** The time of the store. */
  readonly now: number;
  /** See {@link ClaimMetadata.schedule}. */
  readonly schedule?: string;
  /** Another schedule by which an instance came to a tick while this one was in force: since when, and when last. */
  readonly other?: ScheduleOfOther & { readonly since: number; readonly seenAt: number };
  /** When the next tick is due, as the last instance told that claimed or registered. */
  readonly next?: number;
  /**
   * When an instance last told when the next tick is due: by a claim, or by the registration of its schedule. Of a job
   * whose ticks have no order: when the last of them was claimed, or when the job was registered first.
   */
  readonly statedAt?: number;
  /**
   * The last accounted tick: claimed, paused, or told as missed. No tick up to this is ever granted. Not set: none is
   * known, so none was missed.
   */
  readonly last?: number;
  /** How many ticks were missed since the record began. */
  readonly missed: number;
  /** When the last run that succeeded ended. */
  readonly lastSuccessAt?: number;
  readonly owed?: OwedRun;
  readonly pause?: JobPause;
  /**
   * The pauses that end by themselves, also after their end, the oldest first. A new one drops those that ended before
   * the last accounted tick, and more than the last 16.
   */
  readonly timedPauses?: readonly TimedPause[];
  /** The run that holds the job's lock. */
  readonly running?: RunRecord;
  /** The newest runs first, at most as many as were asked for. */
  readonly runs: readonly RunRecord[];
  /** The last seen first, at most as many as were asked for. */
  readonly instances: readonly JobInstance[];
  /** How many instances there are; 0 if none were asked for. */
  readonly instanceCount: number;
}

/**
 * What core needs to start each tick once in the whole fleet. Claiming the tick and taking the job's lock are one
 * atomic step: if a tick is claimed and the lock is free, the runner is dead. Idempotent by owner. A rejection is a
 * `LockStoreError`.
 */
export interface JobClaims {
  claim(tick: Tick, claim: TickClaim): Promise<TickReply>;
  /**
   * Tells the store what has ended. With both, the claim comes first. Idempotent.
   *
   * @param ended `claim`: what becomes of the claim of the tick. `run`: the lock of the job is released, and the history
   *   notes in the same step how the run ended
   * @param lazily no caller waits for the answer, so the command may leave together with the next one
   * @returns false if a run was told whose owner did not hold the lock; then no lock was changed. Its end is noted all the
   *   same
   */
  end(
    owner: LockOwner,
    ended: { readonly claim?: ClaimEnd; readonly run?: RunEnd },
    lazily?: boolean,
  ): Promise<boolean>;
}

/**
 * What core needs of singleton jobs: their claims, and what is remembered of them: their history, their pauses, and which
 * ticks were missed. Every method but `list` and `register` is one atomic step for each job.
 */
export interface JobStore extends JobClaims {
  /**
   * Why this store remembers no jobs, and what to do instead. Then claims carry no note, and no run is told. Not set if
   * it does.
   */
  readonly refusal?: string;
  /** Accounts ticks that no instance claimed. Of all instances that tell them, one is answered `noted`. */
  note(missed: MissedNote): Promise<MissedReply>;
  /**
   * What is known of jobs. A job that is not known has no runs and no instances.
   *
   * @param limit how many of the newest runs of each
   * @param instances how many of the instances that were seen last of each; 0 by default
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
   * Not set: this store does not tell a shutdown of all instances from a crash.
   */
  leave?(resources: readonly string[]): Promise<void>;
  /**
   * Changes a request of an operator, in one step, if it is as the change says, or has become so already.
   *
   * Not set: this store passes on no requests.
   *
   * @returns what it is then; '' for none
   */
  request?(request: OperatorRequest, change: OperatorRequestChange): Promise<string>;
  /** The locks of all jobs that are known, in no order. Of those, `look` may find some that are not known any more. */
  list(): Promise<string[]>;
}

/**
 * The history as it is read. A run without an end holds the lock of the job, or it crashed.
 *
 * @param stored as a store keeps it, the newest first: nothing there tells that a process died
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
 * A job store that remembers no jobs.
 *
 * @param refusal why, and what to do instead; part of the error message
 * @param claims where its claims are
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
