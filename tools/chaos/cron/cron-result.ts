import { checkMissed, type Omission, type TickOutcome } from '../checkers/ticks/missed-ticks.js';
import { checkTicks, type TickStart } from '../checkers/ticks/ticks.js';
import { startsOf, type TickCall } from './tick-log.js';

/** The options by which the ticks of a job are judged. */
export interface JudgedJob {
  readonly name: string;
  readonly overlap: 'skip' | 'wait';
  readonly onCrash: 'skip' | 'retry';
}

/** The verdict of the checkers. */
export interface Judgement {
  /** The number of fired (job, tick) pairs. */
  readonly ticks: number;
  /** The number of times that a scheduler fired. */
  readonly fires: number;
  readonly starts: number;
  /** Starts that were marked as reruns. */
  readonly reruns: number;
  /** Ticks that never started, of jobs that skip a tick if an earlier run has the lock. */
  readonly dropped: number;
  /** Ticks that never started, of other jobs, because their claimant died. */
  readonly diedWithClaimant: number;
  /** Ticks that never started, of such jobs, because a later tick was claimed first. */
  readonly outrun: number;
  /** Calls that were refused as too late for the tick. */
  readonly late: number;
  readonly duplicates: number;
  readonly overlaps: number;
  readonly missed: number;
  /** All violations, including the ones counted above. */
  readonly violations: Omission[];
}

export interface CronResult extends Judgement {
  readonly seed: number;
  readonly kills: number;
  /** The number of stalls. */
  readonly pauses: number;
  readonly connectionKills: number;
  readonly tookMs: number;
}

export function judge(calls: readonly TickCall[], jobs: readonly JudgedJob[]): Judgement {
  const jobNamed = new Map(jobs.map((job) => [job.name, job]));
  const starts = startsOfJobs(calls, jobs);
  const missed = checkMissed(calls.map((call) => outcomeOf(call, jobNamed.get(call.job)!)));
  const violations = [...checkTicks(starts), ...missed.violations];
  const count = (...rules: string[]): number => violations.filter(({ rule }) => rules.includes(rule)).length;
  return {
    ticks: new Set(calls.map(({ job, tick }) => JSON.stringify([job, tick]))).size,
    fires: calls.length,
    starts: starts.length,
    reruns: starts.filter(({ rerun }) => rerun).length,
    ...missed.unstarted,
    late: calls.filter(({ done }) => done?.isLate).length,
    duplicates: count('duplicate', 'rerun of a whole run'),
    overlaps: count('overlap'),
    missed: count('missed', 'never came back'),
    violations,
  };
}

/** Judges the ticks so far. Works while the fleet is running, too. */
export function judgeTicks(calls: readonly TickCall[], jobs: readonly JudgedJob[]): Omission[] {
  return checkTicks(startsOfJobs(calls, jobs));
}

function startsOfJobs(calls: readonly TickCall[], jobs: readonly JudgedJob[]): TickStart[] {
  const onCrashOf = new Map(jobs.map(({ name, onCrash }) => [name, onCrash]));
  return startsOf(calls, (job) => onCrashOf.get(job)!);
}

function outcomeOf(
  { job, tick, on, start, end, done, killedAt }: TickCall,
  { overlap, onCrash }: JudgedJob,
): TickOutcome {
  return {
    job,
    tick,
    on,
    overlap,
    onCrash,
    hasStarted: start !== undefined,
    hasEnded: end !== undefined,
    isDone: done !== undefined,
    error: done?.error,
    isKilled: killedAt !== undefined,
    isLate: done?.isLate ?? false,
  };
}
