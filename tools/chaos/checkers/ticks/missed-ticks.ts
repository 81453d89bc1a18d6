import { SINGLETON_RUN_OPTIONS } from '../../../../lib/features/jobs/core/singleton-run-options.js';

/** A duty that a fleet failed to do. */
export interface Omission {
  readonly rule: string;
  readonly what: string;
}

/** The outcome of one tick in one process whose scheduler fired it. */
export interface TickOutcome {
  readonly job: string;
  readonly tick: string;
  readonly on: string;
  readonly overlap: 'skip' | 'wait';
  readonly onCrash: 'skip' | 'retry';
  readonly hasStarted: boolean;
  /** Its job ran to its end. */
  readonly hasEnded: boolean;
  /** The call came back; with this error, if one is given. */
  readonly isDone: boolean;
  readonly error?: string | undefined;
  /** The process died before that. */
  readonly isKilled: boolean;
  /** The process got the error that the tick is too late. */
  readonly isLate: boolean;
}

/** Ticks that never started, by the reason that allows it. */
export interface Unstarted {
  /** `overlap: 'skip'`: an earlier run had the lock, or the claimant died. */
  readonly dropped: number;
  /** `overlap: 'wait'`: the claimant may have died before its start. */
  readonly diedWithClaimant: number;
  /** `overlap: 'wait'`: a later tick of the job was claimed before it, by an instance whose clock is ahead. */
  readonly outrun: number;
}

/**
 * "No tick is missed":
 *
 * - `never came back`: a call on a live process has no end;
 * - `failed`: it was rejected;
 * - `missed`: the tick did not run, although with `overlap: 'wait'` a process that fired it is alive. With `onCrash:
 * 'retry'`, a
 *   tick ends after `maxReruns` crashes plus one. With `onCrash: 'skip'` the claim of a dead process blocks the tick,
 * so it
 *   only counts if all that fired it lived. A tick that was too late for all live processes was overtaken by a later
 * one,
 *   whose claim must exist.
 */
export function checkMissed(outcomes: readonly TickOutcome[]): { violations: Omission[]; unstarted: Unstarted } {
  const violations: Omission[] = [];
  const unstarted = { dropped: 0, diedWithClaimant: 0, outrun: 0 };
  const lastStarted = lastStartedTicks(outcomes);
  for (const { job, tick, on, isDone, isKilled, error } of outcomes) {
    if (!isDone && !isKilled) violations.push({ rule: 'never came back', what: `${job} ${tick} on ${on}` });
    if (error !== undefined) violations.push({ rule: 'failed', what: `${job} ${tick} on ${on}: ${error}` });
  }
  for (const ofTick of groupByTick(outcomes)) {
    const [{ job, tick, overlap, onCrash }] = ofTick as [TickOutcome];
    const isRun = ofTick.some(({ hasStarted, hasEnded }) => (onCrash === 'retry' ? hasEnded : hasStarted));
    if (isRun) continue;
    const starts = ofTick.filter(({ hasStarted }) => hasStarted).length;
    const hasCrashed = onCrash === 'retry' && starts > SINGLETON_RUN_OPTIONS.defaults.maxReruns;
    const isExcused = hasCrashed || ofTick[onCrash === 'retry' ? 'every' : 'some'](({ isKilled }) => isKilled);
    if (overlap === 'skip') unstarted.dropped++;
    else if (isExcused) unstarted.diedWithClaimant++;
    else if (ofTick.every(({ isKilled, isLate }) => isKilled || isLate) && tick < (lastStarted.get(job) ?? '')) {
      unstarted.outrun++;
    } else
      violations.push({ rule: 'missed', what: `${job} ${tick}, fired on ${ofTick.map(({ on }) => on).join(', ')}` });
  }
  return { violations, unstarted };
}

/** By job. Ticks are ISO times, which sort as they are. */
function lastStartedTicks(outcomes: readonly TickOutcome[]): Map<string, string> {
  const last = new Map<string, string>();
  for (const { job, tick, hasStarted } of outcomes) {
    if (hasStarted && tick > (last.get(job) ?? '')) last.set(job, tick);
  }
  return last;
}

function groupByTick(outcomes: readonly TickOutcome[]): TickOutcome[][] {
  const groups = new Map<string, TickOutcome[]>();
  for (const outcome of outcomes) {
    const key = JSON.stringify([outcome.job, outcome.tick]);
    const group = groups.get(key);
    if (group) group.push(outcome);
    else groups.set(key, [outcome]);
  }
  return [...groups.values()];
}
