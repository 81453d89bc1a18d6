import type { MissedNote } from './job-store.js';
import { MAX_EARLY_MS } from './job-claims.js';
import type { JobState } from './job-state.js';
import type { Runtime } from '../../../kernel/holding/runtime.js';

/** The first look comes within this time of the start, so that a fleet that starts at once does not ask at once. */
export const FIRST_LOOK_MS = 1_000;
/** The scheduler of an application that starts slowly comes later. After so many looks, a job is one that is disabled. */
export const MAX_UNSCHEDULED = 30;
/** After so many schedules, whose next ticks take some milliseconds to compute, the event loop has a turn. */
const SCHEDULES_PER_TURN = 4;
/** The first tick of an interval comes at a random moment of the first tenth of it, and within this time. */
const FIRST_WITHIN = { part: 10, ms: 30_000 };

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
export function isDue(watched: Watched, now: number, wallNow: number): boolean {
  const { job, last, next = Infinity, askAgainAt, unanswered } = watched;
  if (!job.schedule()) return false;
  // The clock of this machine was far ahead, and was set back.
  const isUnlikely = last > wallNow + MAX_EARLY_MS;
  return unanswered !== undefined || now >= askAgainAt || next + job.graceMs < wallNow || isUnlikely;
}

/**
 * Each process restarts the timer of an interval. If processes live shorter than that, none would ever run it. So its
 * first tick comes as long after the last one of the fleet, and not in the first moments of the process.
 */
export function timeFirst(watched: Watched, { now, statedAt }: JobState, runtime: Runtime): void {
  const { interval } = watched.job;
  if (!interval || watched.isTimed || statedAt === undefined) return;
  watched.isTimed = true;
  const { clock, random } = runtime;
  const { ms, fire } = interval;
  const startMs = random.fraction() * Math.min(ms / FIRST_WITHIN.part, FIRST_WITHIN.ms);
  const firesIn = Math.max(watched.since + startMs - clock.now(), statedAt + ms - now);
  const timerFiresIn = watched.since + ms - clock.now();
  let tries = 0;
  const fireOnce = (): void => {
    const isOver = runtime.closing.aborted || ++tries > MAX_UNSCHEDULED;
    if (!isOver && !fire()) clock.setTimer(fireOnce, FIRST_LOOK_MS, { background: true });
  };
  if (firesIn < timerFiresIn) clock.setTimer(fireOnce, firesIn, { background: true });
}

/** Asks now for what the claims of the next ticks need. Then nothing is left to compute when many jobs are due at once. */
export async function prepareTicks(schedules: ReadonlySet<TickSchedule | undefined>, now: number): Promise<void> {
  let asked = 0;
  for (const schedule of schedules) {
    const next = schedule?.after(now);
    if (next === undefined) continue;
    schedule!.around(next);
    if (++asked % SCHEDULES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}
