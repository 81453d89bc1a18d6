import type { LockOwner } from './lock-store.js';
import type { DueRefusal, TickDue } from './tick-due.js';

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
  readonly ownership: LockOwner;
  readonly leaseMs: number;
  /** How long the claim is remembered, in milliseconds. With `due`, at least {@link windowMs}. */
  readonly keepMs: number;
  /** What becomes of the tick while an earlier run still holds the job's lock: nothing, or it runs after that. */
  readonly overlap: 'skip' | 'wait';
  /**
   * What may be taken over from another owner while the job's lock is free: nothing; a tick whose run was not granted to any
   * owner, or that was given back; or also one whose run was granted and has not finished: its runner is dead.
   */
  readonly takeOver: 'nothing' | 'unbegun' | 'unfinished';
  /** For a tick that is a time of a schedule: the store's clock decides whether it may start. */
  readonly due?: TickDue | undefined;
}

/** What the tick store answers to a claim. */
export type TickReply =
  /**
   * The tick and the job's lock are this claimant's, now or since before. Run it. `rerun`: the run was granted to another
   * claimant before, so it may have begun.
   */
  | { readonly status: 'granted'; readonly fencingToken: number; readonly rerun: boolean }
  /** The tick is this claimant's, but an earlier run holds the lock (`overlap: 'wait'`). `ttlMs`: what is left of that lease. */
  | { readonly status: 'claimed'; readonly ttlMs: number }
  /**
   * Another instance has the tick and has not finished it. `ttlMs`: what is left of the lock's lease; 0 when it is free.
   * `isBegun`: its run was granted.
   */
  | { readonly status: 'taken'; readonly ttlMs: number; readonly isBegun: boolean }
  /** It was claimed just now, and dropped because an earlier run holds the lock (`overlap: 'skip'`). */
  | { readonly status: 'overlap' }
  /** It has run, or was dropped, or (where it was to be taken over) is forgotten. */
  | { readonly status: 'finished' }
  /** It is too late for the tick, or a later one of the job was claimed; or it is due too far ahead. Nothing was changed. */
  | DueRefusal;

/**
 * What core needs to start each tick once in the whole fleet. Claiming the tick and taking the job's lock are one atomic
 * step, so a claimed tick whose lock is free has a dead runner. Idempotent by owner. A rejection is a `LockStoreError`.
 */
export interface TickStore {
  claim(tick: Tick, claim: TickClaim): Promise<TickReply>;
  /** Notes that the tick has run, if it is still this owner's: no process reruns it. */
  finish(tick: Tick, ownership: LockOwner, keepMs: number): Promise<void>;
  /** Gives the tick back, if it is still this owner's, which has not begun its run and never will: any instance may have it. */
  giveBack(tick: Tick, ownership: LockOwner, keepMs: number): Promise<void>;
}
