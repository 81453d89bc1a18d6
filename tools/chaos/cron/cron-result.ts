import { checkMissed, type Omission, type TickOutcome } from '../checkers/ticks/missed-ticks.js';
import { checkTicks, type TickStart } from '../checkers/ticks/ticks.js';
import { startsOf, type TickCall } from './tick-log.js';

/** How the ticks of a job run. */
export interface JudgedJob {
  readonly name: string;
  readonly overlap: 'skip' | 'wait';
  readonly onCrash: 'skip' | 'retry';
}

/** What the checkers make of the calls. */
export interface Judgement {
  /** (job, tick) pairs that somebody fired. */
  readonly ticks: number;
  /** How often a scheduler fired one. */
  readonly fires: number;
  readonly starts: number;
  /** Of the starts: those that said so. */
  readonly reruns: number;
  /** Ticks that nobody started, of jobs that skip them where an earlier run has the lock. */
  readonly dropped: number;
  /** Ticks that nobody started, of other jobs, because whoever had claimed them died. */
  readonly diedWithClaimant: number;
  /** Ticks that nobody started, of such jobs, because a later tick of the job was claimed first. */
  readonly outrun: number;
  /** Calls that were told that they are too late for the tick. */
  readonly late: number;
  readonly duplicates: number;
  readonly overlaps: number;
  readonly missed: number;
  /** All of them, also those that are counted above. */
  readonly violations: Omission[];
}

export interface CronResult extends Judgement {
  readonly seed: number;
  readonly kills: number;
  /** How often a process stood still. */
  readonly pauses: number;
  /** How often a machine was suspended. */
  readonly suspends?: number;
  readonly clockSteps?: number;
  readonly connectionKills?: number;
  /** How long it was by the clock of the simulation. */
  readonly simulatedMs?: number;
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

/** What is wrong with the ticks as far as they have got, also while the fleet is at work. */
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
