import type { MissedNote } from './job-store.js';
import { MAX_EARLY_MS } from './job-claims.js';
import type { JobState } from './job-state.js';

/** When the ticks of a job are due. Times are in milliseconds since the Unix epoch. */
export interface TickSchedule {
  /** Its text, with its time zone. Another text is another schedule. */
  readonly text: string;
  /** Returns the ticks before and after this one, if any. Cheap for a process that asks for every tick in turn. */
  around(tick: number): { readonly before: number | undefined; readonly after: number | undefined };
  /** The first tick after a time; `undefined` if there is none any more. */
  after(time: number): number | undefined;
  /**
   * Finds the ticks after a time and not after another. Gives the event loop a turn from time to time.
   *
   * @param most how many of the newest to return; the others are only counted
   * @returns how many there were, the first of all of them if there are some, and the newest, oldest first
   */
  between(
    after: number,
    until: number,
    most: number,
  ): Promise<{ readonly count: number; readonly first?: number; readonly ticks: readonly number[] }>;
}

/** A job of this process, that is watched for missed ticks. */
interface WatchedJob {
  readonly job: string;
  readonly historySize: number;
  /**
   * A tick that was due this long ago, and that no instance has claimed, was missed. `Infinity` for a job whose ticks
   * have no order.
   */
  readonly graceMs: number;
  readonly onMissed: 'skip' | 'runOnce';
  /** A run for missed ticks is owed if the newest of them was due within this time. */
  readonly catchUpWindowMs: number;
  /**
   * The date of a job that is due once. `isOfClass`: it is in the code, so that it cannot change while the process
   * runs.
   */
  readonly date?: { readonly isOfClass: boolean; at(): number | undefined } | undefined;
  /** When its ticks are due; `undefined` while it is not scheduled here, and if its ticks have no order. */
  schedule(): TickSchedule | undefined;
  /**
   * Fires the first tick of an interval before its timer does, because the last run of the fleet was long ago. Returns
   * false as long as there is no timer.
   */
  readonly interval?: { readonly ms: number; fire(): boolean } | undefined;
  /** Tries to run the one run for all ticks that were missed. Another instance may have it. */
  runOwed(owed: NonNullable<JobState['owed']>): Promise<unknown>;
}

/** The state of one job in this process. */
export interface Watched {
  readonly job: WatchedJob;
  readonly resource: string;
  /** The schedule or the date that the store knows, as far as this process knows. */
  text: string | undefined;
  isRegistered: boolean;
  /** When this process has the job since, on the monotonic clock. */
  readonly since: number;
  isTimed: boolean;
  /** The number of polls at which it had no schedule yet. */
  unscheduled: number;
  /** The last tick that is accounted, as far as this process knows, and the one after it. */
  last: number;
  next: number | undefined;
  /** When to ask the store all the same, on the monotonic clock: it may owe a run that its instance never began. */
  askAgainAt: number;
  isRunningOwed: boolean;
  /** When the store last did not answer for it, on the monotonic clock, while it answered for other jobs. */
  lastFailedAt?: number | undefined;
  /** The report without a known answer. */
  unanswered: MissedNote | undefined;
  /** The last missed ticks in an event. */
  told?: string;
}

/** Returns true if the job's schedule differs from the stored one. */
export function isChanged({ job, text }: Watched): boolean {
  return (job.schedule()?.text ?? text) !== text;
}

/** Returns true if a tick may have been missed, or a run may be pending. */
export function isDue(
  { job, last, next = Infinity, askAgainAt, unanswered }: Watched,
  now: number,
  wallNow: number,
): boolean {
  if (!job.schedule()) return false;
  // The clock of this machine was far ahead, and was set back.
  const isUnlikely = last > wallNow + MAX_EARLY_MS;
  return unanswered !== undefined || now >= askAgainAt || next + job.graceMs < wallNow || isUnlikely;
}
