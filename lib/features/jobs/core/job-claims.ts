import type { LockOwner } from '../../../kernel/store/lock-store.js';

/** One tick of one singleton job. */
export interface Tick {
  /** The lock of the job: a run of it holds this resource. */
  readonly resource: string;
  /** Which tick: the same text on every instance, such as the nominal time. */
  readonly tick: string;
}

/** The ticks that no instance claimed. */
export interface MissedSpan {
  readonly count: number;
  /** When the first of them was due, in epoch milliseconds. */
  readonly first: number;
  /** When the last of them was due, in epoch milliseconds. */
  readonly last: number;
}

/**
 * The metadata of a claim for the record of its job. Without it, a claim neither reads nor writes the record. With
 * `historySize: 0` and neither `schedule` nor `next`, it creates no record: it obeys a pause, and keeps an existing
 * record.
 */
export interface ClaimMetadata {
  /** The purpose of the run. `tick`: one tick. `manual`: a call of `runNow`. `catchUp`: all ticks that were missed. */
  readonly kind: 'tick' | 'manual' | 'catchUp';
  /** The maximum number of entries in the history; 0 for none. */
  readonly historySize: number;
  /**
   * The cron text with its time zone. Not set for jobs whose ticks have no order: intervals, and texts of the user.
   * Needs `due` in the claim.
   *
   * A claim leaves another schedule in the record, with its next tick, as long as instances fire ticks of that one:
   * until its next tick can be claimed no longer (`due.lateMs` after it), and at most until two days after an instance
   * with that schedule last reported a next tick, by `register` or by a claim, also by one that was not granted because
   * another instance had the tick. So in a rolling deployment an old release does not replace the schedule of the new
   * one.
   */
  readonly schedule?: string | undefined;
  /** When the tick before this one was due by the same schedule, in milliseconds since the Unix epoch. */
  readonly previous?: number | undefined;
  /**
   * When the next tick is due, in milliseconds since the Unix epoch. The record lasts until a week after it.
   */
  readonly next?: number | undefined;
  /** `true` if this instance has registered the single date that the tick is. Another date may have replaced it. */
  readonly isDate?: boolean | undefined;
}

/** A request of an instance for a tick. */
export interface TickClaim {
  /** The owner of the claim, and of the job's lock if it is granted. */
  readonly owner: LockOwner;
  readonly leaseMs: number;
  /**
   * The TTL of the claim, in milliseconds. With `due`, longer than its window. Without `due`, the same text may come
   * again: a claim of another owner is remembered no longer than this from now on, unless it is taken over.
   */
  readonly claimTtlMs: number;
  /** If an earlier run still holds the job's lock: drop the tick, or run it after that run. */
  readonly overlap: 'skip' | 'wait';
  /**
   * The claims that may be taken over from another owner while the job's lock is free. `unbegun`: a tick that was given
   * back, or with a run that was never granted. `unfinished`: also a tick with a run that was granted and did not
   * finish, because its runner is dead.
   */
  readonly takeOver: 'nothing' | 'unbegun' | 'unfinished';
  /** With `unfinished`: how many reruns of the tick may begin. @default any number */
  readonly maxReruns?: number | undefined;
  /** For a tick that is a time of a schedule: the store's clock decides whether it may start. */
  readonly due?: DueWindow | undefined;
  /** Its metadata, in a store that has job records. */
  readonly note?: ClaimMetadata | undefined;
}

/** The schedule of another instance; see {@link ClaimMetadata.schedule}. */
export interface ScheduleOfOther {
  readonly schedule: string;
  readonly instanceId: string;
}

/** The store's answer to a claim. */
export type TickReply =
  /**
   * The claimant has the tick and the job's lock. Run the job. `attempt`: 1, and one more for each claimant that the
   * run was granted to before, which may have begun it. `missed`: for a catch-up, its ticks. `isNew`: the store had no
   * record of the job, because it is new, or because the store has lost its data. `other`: instances also fire the job
   * by this schedule, and have done so for longer than a deployment takes. Only one claim gets this reply.
   */
  | {
      readonly status: 'granted';
      readonly fencingToken: number;
      readonly attempt: number;
      readonly missed?: MissedSpan | undefined;
      readonly isNew?: boolean;
      readonly other?: ScheduleOfOther | undefined;
    }
  /**
   * The tick is this claimant's, but an earlier run holds the lock (`overlap: 'wait'`). `ttlMs`: the rest of that
   * lease.
   */
  | { readonly status: 'claimed'; readonly ttlMs: number }
  /**
   * Another instance has the tick and has not finished it. `ttlMs`: the rest of the lock's lease; 0 if the lock is
   * free. `isBegun`: the run was granted.
   */
  | { readonly status: 'taken'; readonly ttlMs: number; readonly isBegun: boolean }
  /**
   * The tick was claimed and dropped, because an earlier run holds the lock (`overlap: 'skip'`). A catch-up is not
   * dropped: nothing was changed, and it stays owed.
   */
  | { readonly status: 'overlap' }
  /**
   * The job is paused. The tick was claimed and dropped, so that no instance runs it after a resume. A catch-up is not
   * dropped: nothing was changed, and it stays owed.
   */
  | {
      readonly status: 'paused';
      readonly by?: string | undefined;
      readonly reason?: string | undefined;
      readonly until?: number | undefined;
    }
  /**
   * Ticks were missed between the last accounted one and this one. Nothing was changed. Report them with
   * `JobStore.note`, and claim again. `lateMs` is the lateness of this tick by the store's clock: while it is below 0,
   * earlier ticks may not be due yet, or another instance is about to claim them.
   */
  | { readonly status: 'gap'; readonly last: number; readonly lateMs: number }
  /**
   * `attempts` runs of the tick were granted, and none has finished: `maxReruns` is reached. The tick is finished from
   * now on, and other claimants only learn that.
   */
  | { readonly status: 'crashed'; readonly attempts: number }
  /** The tick has run or was dropped. For a take-over also: it is forgotten. */
  | { readonly status: 'finished' }
  /** The job has a single date, which is another one: `registered`, in milliseconds since the Unix epoch. */
  | { readonly status: 'otherDate'; readonly registered: number }
  /** The tick is too late, a later tick of the job was claimed, or it is due too far ahead. Nothing was changed. */
  | DueRefusal;

/** The end of a claim, if its owner still has it. */
export interface ClaimEnd {
  readonly tick: string;
  /**
   * `finished`: it has run, and no process reruns it. `returned`: all instances may have it, because the owner has not
   * begun the run and never will.
   */
  readonly to: 'finished' | 'returned';
  /** The TTL of that state, in milliseconds. */
  readonly claimTtlMs: number;
}

/** When a tick of a schedule is due, and how much earlier or later it may start, by the store's clock. */
export interface DueWindow {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** A tick that is due in more than this many milliseconds is refused: the clock of the process is wrong. */
  readonly earlyMs: number;
  /**
   * A tick that was due more than this many milliseconds ago is refused: the event loop was blocked, or its clock is
   * wrong.
   */
  readonly lateMs: number;
}

/** Why a tick may not start. `lateMs` is how late it is by the store's clock, below 0 if it is early. */
export interface DueRefusal {
  readonly status: 'late' | 'early';
  readonly lateMs: number;
}

const HOUR_MS = 60 * 60 * 1000;
/** The largest `earlyMs`. */
export const MAX_EARLY_MS = 24 * HOUR_MS;
/** The largest part of `lateMs` that is for retrying the claim. */
export const MAX_TRY_MS = HOUR_MS;
/** The largest part of `lateMs` that is for a random delay of the claim. */
export const MAX_SPREAD_MS = HOUR_MS;
/**
 * The TTL of a job's last claimed tick: the longest window in which a tick may start, and an hour more for clocks that
 * differ in a failover.
 */
export const LAST_TICK_KEEP_MS = 2 * MAX_EARLY_MS + MAX_TRY_MS + MAX_SPREAD_MS + HOUR_MS;
/** Replaces the claimant once a tick has run or was dropped. */
export const FINISHED = 'finished';

/** Replaces the claimant once a tick was given back. */
export const RETURNED = 'returned';

/** A change to the claim of a tick. */
export interface ClaimChange {
  /** The owner id that asks. */
  readonly owner: string;
  /** The new claim, or {@link FINISHED}. Not set: only read. */
  readonly to?: string;
  /** The claim that may be replaced, besides a missing one and one that was given back. */
  readonly from?: string;
  /** `true` if any claim but {@link FINISHED} may be replaced. */
  readonly force?: boolean;
  /** A claim to give back first. */
  readonly drop?: string;
  /** The TTL of the resulting claim, in milliseconds. Not set: its expiry does not change. */
  readonly claimTtlMs?: number;
  /** The maximum remaining TTL of an existing claim, in milliseconds. Not set: no change. */
  readonly mostMs?: number | undefined;
  /** When the tick is due. If a claim is written, the store also notes this as the last tick of the job. */
  readonly due?: DueWindow | undefined;
  /** `true` if an unclaimed tick is refused when it is late or early; see {@link ClaimNode.exchange}. */
  readonly isJudged?: boolean;
}

/** The claims of ticks at one node of a quorum, without the locks of the jobs. A rejection is a `LockStoreError`. */
export interface ClaimNode {
  /**
   * Changes the claim in one step, if the change allows it.
   *
   * @returns the resulting claim, or `null` if there is none, with a hash in place of another owner's secret id. For a
   * refused tick: 'late' or 'early', and by how many milliseconds the tick is late
   */
  exchange(tick: Tick, change: ClaimChange): Promise<string | null>;
}

/** The text of a claim whose run is granted, or of one that is given back; see lua/include/claim-text.lua. */
export function claimText(claimant: string, attempt: number): string {
  if (attempt > 1) return `${claimant}${attempt > 2 ? `~${attempt}` : ''} reruns`;
  return claimant === RETURNED ? RETURNED : `${claimant} runs`;
}

/**
 * Reads a claim. `isBegun`: the run was granted to the claimant, or to another one before. `attempt`: 1 for the first run of
 * the tick, 2 for its first rerun.
 */
export function readClaim(text: string): { readonly isBegun: boolean; readonly attempt: number } {
  const [, attempt, state] = /(?:~(\d{1,3}))?(?: (runs|reruns))?$/.exec(text)!;
  return { isBegun: state !== undefined, attempt: Number(attempt ?? (state === 'reruns' ? 2 : 1)) };
}

/** Returns true if this owner made the claim. A quorum puts an id between the owner and the state. */
export function isClaimOf(text: string, owner: string): boolean {
  return text === owner || text.startsWith(`${owner} `) || text.startsWith(`${owner}~`);
}
