/** How far one tick of a singleton job is. */
export type TickProgress =
  /** Claimed by this claimant, now or before. */
  | 'claimed'
  /** Claimed by another one, which has not finished. */
  | 'taken'
  /** It has run. */
  | 'finished'
  /** Nobody has claimed it, or the claim is forgotten by now. */
  | 'unknown';

/** One tick of one job. */
export interface Tick {
  readonly job: string;
  /** Which tick: the same text on every instance, such as the nominal time. */
  readonly tick: string;
}

/**
 * What core needs to start each tick once in the whole fleet. Claims are idempotent by claimant. A rejection is a
 * `LockStoreError`.
 */
export interface TickLedger {
  /** Claims the tick, if nobody has, and remembers that for `keepMs`. */
  claim(tick: Tick, claimant: string, keepMs: number): Promise<TickProgress>;
  /** How far the tick is, without claiming it. */
  progress(tick: Tick): Promise<TickProgress>;
  /** Notes that the tick has run: nobody reruns it. */
  finish(tick: Tick, keepMs: number): Promise<void>;
}
