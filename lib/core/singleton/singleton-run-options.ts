import {
  type LockDefaults,
  type LockOptions,
  type ResolvedLockOptions,
  resolveLockOptions,
} from '../api/lock-options.js';
import type { Lease } from '../api/lease.js';
import { checkResource, jobResource } from '../api/resource.js';
import { LONGEST_EARLY_MS, LONGEST_TRY_MS, type TickDue, windowMs, type Tick } from '../store/tick-store.js';
import { checkInteger, checkKnownOptions, checkOneOf } from '../api/validation.js';

/** When a tick is due by its schedule. */
export interface TickTime {
  /** When the tick is due, in milliseconds since the Unix epoch. */
  readonly at: number;
  /**
   * By how much the clock of an instance and that of Redis may differ, in milliseconds: 1 s to 24 h. A tick that is due further
   * ahead than this is refused, and so is one that was due longer ago than this and `waitMs` (of which an hour counts at most).
   */
  readonly maxClockSkewMs: number;
}

/** How the ticks of one singleton job run. */
export interface SingletonRunOptions {
  /**
   * The name of the job: the same on every instance. Its runs hold the resource `cron:<job>`.
   *
   * @allowed 1 to 200 characters
   */
  readonly job: string;
  /** Which tick of the job: the same text on every instance. @allowed text */
  readonly tick: string;
  /**
   * What happens to a tick that comes while an earlier run has not ended, on any instance. `'skip'` drops it;
   * `'wait'` runs it after that.
   */
  readonly overlap: 'skip' | 'wait';
  /**
   * What happens to a run that does not finish because its process dies. `'skip'` leaves it unfinished; `'retry'`
   * lets another instance run the tick again, within a lease.
   */
  readonly onCrash: 'skip' | 'retry';
  /** How long a claim is remembered. With `onCrash: 'retry'`, at least two leases. @allowed 1 ms and more */
  readonly keepMs: number;
  /**
   * For a tick that is a time: the clock of Redis decides whether it may still start, and no tick starts that is
   * older than the last claimed tick of the job. The claim is then remembered for as long as that takes.
   *
   * @default none
   */
  readonly due?: TickTime | undefined;
  /**
   * The lock of the run. `waitMs` is how long to keep trying to claim the tick while Redis does not answer.
   *
   * @allowed `leaseMs`, `waitMs`, `maxHoldMs`, `attemptTimeoutMs`
   */
  readonly lock: Pick<LockOptions, 'leaseMs' | 'waitMs' | 'maxHoldMs' | 'attemptTimeoutMs'>;
}

/** One run of one tick, as the job sees it. */
export interface SingletonRun {
  readonly job: string;
  /** Which tick; of a cron job the time it was scheduled for, as an ISO string. A rerun has the same tick. */
  readonly tick: string;
  /** Whether the run was granted to another instance before, which may have begun it and did not finish it. */
  readonly rerun: boolean;
  /** The lease of the job's lock: its `signal` and its `fencingToken`. */
  readonly lease: Lease;
}

/** The work of one run. */
export type SingletonWork<T> = (lease: Lease, run: SingletonRun) => T | Promise<T>;

/** Options with nothing left open. */
export interface ResolvedSingletonRun {
  readonly options: SingletonRunOptions;
  readonly lock: ResolvedLockOptions;
  readonly keepMs: number;
  readonly target: Tick;
  readonly due: TickDue | undefined;
}

const OPTION_NAMES = [
  'job',
  'tick',
  'overlap',
  'onCrash',
  'keepMs',
  'due',
  'lock',
] as const satisfies readonly (keyof SingletonRunOptions)[];

/** @throws InvalidLockOptionsError that names the option, the value and what is allowed */
export function resolveSingletonRun(options: SingletonRunOptions, defaults: LockDefaults): ResolvedSingletonRun {
  checkKnownOptions('runSingleton', options, OPTION_NAMES);
  const { job, tick, overlap, onCrash, keepMs, due: time } = options;
  const target = { resource: jobResource(job), tick: checkResource(tick, 'runSingleton as its tick') };
  // null, because undefined passes for an option that was left out.
  checkOneOf('overlap', overlap ?? null, ['skip', 'wait']);
  checkOneOf('onCrash', onCrash ?? null, ['skip', 'retry']);
  checkInteger('keepMs', keepMs ?? NaN, 1, Number.MAX_SAFE_INTEGER);
  // A run may be long, whatever the module default: only maxHoldMs limits it.
  const lock = { ...resolveLockOptions(options.lock, defaults), watchdog: true };
  const due = time === undefined ? undefined : resolveDue(time, lock.waitMs);
  // A claim that is forgotten before its lock expires could never be taken over.
  const leastMs = Math.max(onCrash === 'retry' ? 2 * lock.leaseMs : 0, due ? windowMs(due) : 0);
  return { options, lock, keepMs: Math.max(keepMs, leastMs), target, due };
}

/** @throws InvalidLockOptionsError */
function resolveDue(time: TickTime, waitMs: number): TickDue {
  checkKnownOptions('runSingleton as its due', time, ['at', 'maxClockSkewMs'] satisfies (keyof TickTime)[]);
  checkInteger('due.at', time.at ?? NaN, 0, Number.MAX_SAFE_INTEGER, 'milliseconds since 1970');
  checkMaxClockSkew('due.maxClockSkewMs', time.maxClockSkewMs ?? NaN);
  const { at, maxClockSkewMs } = time;
  return { at, earlyMs: maxClockSkewMs, lateMs: maxClockSkewMs + Math.min(waitMs, LONGEST_TRY_MS) };
}

/** @throws InvalidLockOptionsError */
export function checkMaxClockSkew(option: string, maxClockSkewMs: unknown): void {
  checkInteger(option, maxClockSkewMs, 1_000, LONGEST_EARLY_MS);
}
