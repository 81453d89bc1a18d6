import type { Tick } from './tick-ledger.js';

/** What stands in place of the claimant once a tick has run or was dropped. */
export const FINISHED = 'finished';

/** How the claim of a tick is to be changed. */
export interface ClaimChange {
  /** Who is to have the tick, or {@link FINISHED}. Nothing to look only. */
  readonly to?: string;
  /** Whose claim it may take the place of, beside none at all. */
  readonly from?: string;
  /** Take the place of any claim but {@link FINISHED}. */
  readonly force?: boolean;
  /** Gives the claim of this claimant up. */
  readonly drop?: string;
  /** How long what stands then is remembered, in milliseconds; nothing: as long as it would be. */
  readonly keepMs?: number;
}

/** Claims of ticks, without the locks of their jobs: what a node of a quorum keeps. A rejection is a `LockStoreError`. */
export interface TickClaims {
  /** Changes the claim where it may, in one step, and gives what stands then: `null` for nothing. */
  exchange(tick: Tick, change: ClaimChange): Promise<string | null>;
}
