/** When a tick of a schedule is due, and how far from that it may start, by the clock of the store. */
export interface TickDue {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** A tick that is due in more than this many milliseconds is refused: the clock of the process is wrong. */
  readonly earlyMs: number;
  /** A tick that was due more than this many milliseconds ago is refused: the process stood still, or its clock is wrong. */
  readonly lateMs: number;
}

/** Why a tick may not start, and by how many milliseconds it is late by the clock of the store; below 0 where it is early. */
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
 * How long the last claimed tick of a job is remembered: longer than the longest window in which a tick may start, and an hour
 * for the clocks of a fail-over.
 */
export const LAST_TICK_KEEP_MS = 2 * LONGEST_EARLY_MS + LONGEST_TRY_MS + HOUR_MS;
/** What a claim is remembered longer than the window, so that neither ends in the same millisecond. */
const MARGIN_MS = 1_000;

/**
 * How long the claim of a tick has to be remembered at least, in milliseconds.
 *
 * Why no tick T starts twice, however long a process stands still: a new claim of T is accepted only while the store's clock
 * is in the window from T - earlyMs to T + lateMs. The claim is kept for longer than the whole window lasts, so the store
 * remembers it, or refuses T as late. Apart from that, the last claimed tick L of the job is kept for LAST_TICK_KEEP_MS, which
 * is longer than any window, and T <= L is refused: so this holds too where processes have different windows, as in a
 * deployment that changes `maxClockSkewMs`. An L that lies beyond now + earlyMs could not have been accepted now: the store's
 * own clock was wrong and has been set back. It is passed over, or the job would stop until then.
 */
export function windowMs({ earlyMs, lateMs }: TickDue): number {
  return earlyMs + lateMs + MARGIN_MS;
}

/**
 * Whether a tick that no process has claimed may be claimed now. A tick that stands as claimed (by a runner that died, or by a
 * process that gave it back at its shutdown) is not judged; nor would one be that is to be caught up with.
 *
 * @param last the last tick of the job that was claimed, or 0
 * @param now the time by the store's clock
 */
export function refusalOf({ at, earlyMs, lateMs }: TickDue, last: number, now: number): DueRefusal | undefined {
  if (at > now + earlyMs) return { status: 'early', lateMs: now - at };
  if (at < now - lateMs || (at <= last && last <= now + earlyMs)) return { status: 'late', lateMs: now - at };
  return undefined;
}
