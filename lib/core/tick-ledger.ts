import type { Ownership } from './lock-store.js';

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
  readonly ownership: Ownership;
  readonly leaseMs: number;
  /** How long the claim is remembered, in milliseconds: longer than any two clocks of the fleet are apart. */
  readonly keepMs: number;
  /** What becomes of the tick while an earlier run still holds the job's lock: nothing, or it runs after that. */
  readonly overlap: 'skip' | 'wait';
  /** Take over a tick that somebody claimed and never finished, if the job's lock is free: its runner is dead. */
  readonly rescue: boolean;
}

/** What the ledger answers to a claim. */
export type TickReply =
  /** The tick and the job's lock are this claimant's, now or since before. Run it. */
  | { readonly status: 'granted'; readonly fencingToken: number }
  /** The tick is this claimant's, but an earlier run holds the lock (`overlap: 'wait'`). `ttlMs`: what is left of that lease. */
  | { readonly status: 'claimed'; readonly ttlMs: number }
  /** Another instance has the tick and has not finished it. `ttlMs`: what is left of the lock's lease; 0 when it is free. */
  | { readonly status: 'taken'; readonly ttlMs: number }
  /** It was claimed just now, and dropped because an earlier run holds the lock (`overlap: 'skip'`). */
  | { readonly status: 'overlap' }
  /** It has run, or was dropped, or (to a rescuer) is forgotten. */
  | { readonly status: 'finished' };

/**
 * What core needs to start each tick once in the whole fleet. Claiming the tick and taking the job's lock are one atomic
 * step, so a claimed tick whose lock is free has a dead runner. Idempotent by owner. A rejection is a `LockStoreError`.
 */
export interface TickLedger {
  claim(tick: Tick, claim: TickClaim): Promise<TickReply>;
  /** Notes that the tick has run, if it is still this owner's: nobody reruns it. */
  finish(tick: Tick, ownership: Ownership, keepMs: number): Promise<void>;
}
