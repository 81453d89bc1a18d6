import type { LockOwner } from './lock-store.js';

/** One tick of one singleton job. */
export interface Tick {
  /** The job's own lock: the resource that a run of it holds. */
  readonly resource: string;
  /** Which tick: the same text on every instance, such as the nominal time. */
  readonly tick: string;
}

/** How an instance wants a tick. */
export interface TickClaim {
  /** Who claims, and who holds the job's lock if it is granted. */
  readonly owner: LockOwner;
  readonly leaseMs: number;
  /** How long the claim is remembered, in milliseconds. With `due`, at least {@link windowMs}. */
  readonly keepMs: number;
  /** What becomes of the tick while an earlier run still holds the job's lock: nothing, or it runs after that. */
  readonly overlap: 'skip' | 'wait';
  /**
   * What may be taken over from another owner while the job's lock is free: nothing; a tick whose run was not granted
   * to any owner, or that was given back; or also one whose run was granted and has not finished: its runner is dead.
   */
  readonly takeOver: 'nothing' | 'unbegun' | 'unfinished';
  /** For a tick that is a time of a schedule: the store's clock decides whether it may start. */
  readonly due?: TickDue | undefined;
}

/** What the tick store answers to a claim. */
export type TickReply =
  /**
   * The tick and the job's lock are this claimant's, now or since before. Run it. `rerun`: the run was granted to
   * another claimant before, so it may have begun.
   */
  | { readonly status: 'granted'; readonly fencingToken: number; readonly rerun: boolean }
  /**
   * The tick is this claimant's, but an earlier run holds the lock (`overlap: 'wait'`). `ttlMs`: what is left of that
   * lease.
   */
  | { readonly status: 'claimed'; readonly ttlMs: number }
  /**
   * Another instance has the tick and has not finished it. `ttlMs`: what is left of the lock's lease; 0 when it is
   * free.
   * `isBegun`: its run was granted.
   */
  | { readonly status: 'taken'; readonly ttlMs: number; readonly isBegun: boolean }
  /** It was claimed just now, and dropped because an earlier run holds the lock (`overlap: 'skip'`). */
  | { readonly status: 'overlap' }
  /** It has run, or was dropped, or (where it was to be taken over) is forgotten. */
  | { readonly status: 'finished' }
  /**
   * It is too late for the tick, or a later one of the job was claimed; or it is due too far ahead. Nothing was
   * changed.
   */
  | DueRefusal;

/**
 * What core needs to start each tick once in the whole fleet. Claiming the tick and taking the job's lock are one
 * atomic step, so a claimed tick whose lock is free has a dead runner. Idempotent by owner. A rejection is a
 * `LockStoreError`.
 */
export interface TickStore {
  claim(tick: Tick, claim: TickClaim): Promise<TickReply>;
  /** Notes that the tick has run, if it is still this owner's: no process reruns it. */
  finish(tick: Tick, owner: LockOwner, keepMs: number): Promise<void>;
  /**
   * Gives the tick back, if it is still this owner's, which has not begun its run and never will: any instance may have
   * it.
   */
  giveBack(tick: Tick, owner: LockOwner, keepMs: number): Promise<void>;
}

/** When a tick of a schedule is due, and how far from that it may start, by the clock of the store. */
export interface TickDue {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** A tick that is due in more than this many milliseconds is refused: the clock of the process is wrong. */
  readonly earlyMs: number;
  /**
   * A tick that was due more than this many milliseconds ago is refused: the process stood still, or its clock is
   * wrong.
   */
  readonly lateMs: number;
}

/**
 * Why a tick may not start, and by how many milliseconds it is late by the clock of the store; below 0 where it is
 * early.
 */
export interface DueRefusal {
  readonly status: 'late' | 'early';
  readonly lateMs: number;
}

const HOUR_MS = 60 * 60 * 1000;
/** The largest `earlyMs`. */
export const LONGEST_EARLY_MS = 24 * HOUR_MS;
/** The largest part of `lateMs` that stands for the time that a claim is tried. */
export const LONGEST_TRY_MS = HOUR_MS;
/**
 * How long the last claimed tick of a job is remembered: longer than the longest window in which a tick may start, and
 * an hour for the clocks of a fail-over.
 */
export const LAST_TICK_KEEP_MS = 2 * LONGEST_EARLY_MS + LONGEST_TRY_MS + HOUR_MS;
/** What a claim is remembered longer than the window, so that neither ends in the same millisecond. */
const MARGIN_MS = 1_000;

/**
 * How long the claim of a tick has to be remembered at least, in milliseconds.
 *
 * Why no tick T starts twice, however long a process stands still: a new claim of T is accepted only while the store's
 * clock is in the window from T - earlyMs to T + lateMs. The claim is kept for longer than the whole window lasts, so
 * the store remembers it, or refuses T as late. Apart from that, the last claimed tick L of the job is kept for
 * LAST_TICK_KEEP_MS, which is longer than any window, and T <= L is refused: so this holds too where processes have
 * different windows, as in a deployment that changes `maxClockSkewMs`. An L that lies beyond now + earlyMs could not
 * have been accepted now: the store's own clock was wrong and has been set back. It is passed over, or the job would
 * stop until then.
 */
export function windowMs({ earlyMs, lateMs }: TickDue): number {
  return earlyMs + lateMs + MARGIN_MS;
}

/**
 * Whether a tick that no process has claimed may be claimed now. A tick that stands as claimed (by a runner that died,
 * or by a process that gave it back at its shutdown) is not judged; nor would one be that is to be caught up with.
 *
 * @param last the last tick of the job that was claimed, or 0
 * @param now the time by the store's clock
 */
export function refusalOf({ at, earlyMs, lateMs }: TickDue, last: number, now: number): DueRefusal | undefined {
  if (at > now + earlyMs) return { status: 'early', lateMs: now - at };
  if (at < now - lateMs || (at <= last && last <= now + earlyMs)) return { status: 'late', lateMs: now - at };
  return undefined;
}

/** What stands in place of the claimant once a tick has run or was dropped. */
export const FINISHED = 'finished';

/** What stands in place of the claimant once a tick was given back. Behind it may stand {@link RERUNS}. */
export const RETURNED = 'returned';
/** What stands behind the owner once the run was granted: for the first time, or after another owner's. */
export const RUNS = 'runs';
export const RERUNS = 'reruns';

/** How the claim of a tick is to be changed. */
export interface ClaimChange {
  /** Who asks. */
  readonly owner: string;
  /** Who is to have the tick, or {@link FINISHED}. Nothing to look only. */
  readonly to?: string;
  /** Whose claim it may take the place of, beside none at all and one that was given back. */
  readonly from?: string;
  /** Take the place of any claim but {@link FINISHED}. */
  readonly force?: boolean;
  /** Gives this claim back. */
  readonly drop?: string;
  /** How long what stands then is remembered, in milliseconds; nothing: as long as it would be. */
  readonly keepMs?: number;
  /** When the tick is due; what is written is noted as the last tick of the job. */
  readonly due?: TickDue | undefined;
  /** Whether a tick that nothing stands for is refused where it is late or early; see {@link TickNode.exchange}. */
  readonly isJudged?: boolean;
}

/**
 * Claims of ticks, without the locks of their jobs: what a node of a quorum keeps. A rejection is a `LockStoreError`.
 */
export interface TickNode {
  /**
   * Changes the claim where it may, in one step.
   *
   * @returns what stands then, with a hash in place of another owner's id where it is a secret;
   * `null` for nothing; or 'late' or 'early' and by how many milliseconds the tick is late, for one that is refused
   */
  exchange(tick: Tick, change: ClaimChange): Promise<string | null>;
}

/** The claim of an owner whose run was granted. */
export function claimText(claimant: string, state: typeof RUNS | typeof RERUNS): string {
  return `${claimant} ${state}`;
}

/**
 * The claimant, or {@link RETURNED}, or '' where nothing stands; and {@link RUNS}, {@link RERUNS}, or '' where no run
 * was granted.
 */
export function readClaim(text: string | null | undefined): { readonly claimant: string; readonly state: string } {
  // From the end: in memory an owner may be called anything.
  const [, claimant = '', state = ''] = /^(.*?)(?: (runs|reruns))?$/s.exec(text ?? '')!;
  return { claimant, state };
}

/** What stands in place of a claim that was given back: a run that another owner may have begun stays one. */
export function returnedFrom(text: string): string {
  return readClaim(text).state === RERUNS ? claimText(RETURNED, RERUNS) : RETURNED;
}

/** Whether the claim is of this owner. A quorum puts an id between the owner and the state. */
export function isClaimOf(text: string, owner: string): boolean {
  return text === owner || text.startsWith(`${owner} `);
}
