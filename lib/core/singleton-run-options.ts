import { type LockDefaults, type LockOptions, type ResolvedLockOptions, resolveLockOptions } from './lock-options.js';
import type { Lease } from './lease.js';
import { checkResource } from './resource.js';
import type { Tick } from './tick-ledger.js';
import { checkInteger, checkKnownOptions, checkOneOf } from './validation.js';

/** How the ticks of one singleton job run. */
export interface SingletonRunOptions {
  /** Which job; the same name on every instance. Its runs hold the resource `cron:<job>`. */
  readonly job: string;
  /** Which tick of it; the same text on every instance. */
  readonly tick: string;
  readonly overlap: 'skip' | 'wait';
  readonly onCrash: 'skip' | 'retry';
  /** How long a claim is remembered, in milliseconds. With `onCrash: 'retry'` no less than two leases. */
  readonly keepMs: number;
  /** `waitMs` is how long the claim itself is tried while Redis does not answer. */
  readonly lock: Pick<LockOptions, 'leaseMs' | 'waitMs' | 'maxHoldMs' | 'attemptTimeoutMs'>;
}

/** One run of one tick, as the job sees it. */
export interface SingletonRun {
  readonly job: string;
  /** Which tick; of a cron job the time it was scheduled for, as an ISO string. What a rerun is recognised by. */
  readonly tick: string;
  /** Whether another instance had the tick before and did not finish it. */
  readonly rerun: boolean;
  /** The lease of the job's lock: its `signal` and its `fencingToken`. */
  readonly lease: Lease;
}

/** What a run does. */
export type SingletonWork<T> = (lease: Lease, run: SingletonRun) => T | Promise<T>;

/** Options with nothing left open. */
export interface ResolvedSingletonRun {
  readonly options: SingletonRunOptions;
  readonly lock: ResolvedLockOptions;
  readonly keepMs: number;
  readonly target: Tick;
}

const OPTION_NAMES = [
  'job',
  'tick',
  'overlap',
  'onCrash',
  'keepMs',
  'lock',
] as const satisfies readonly (keyof SingletonRunOptions)[];

/** @throws InvalidLockOptionsError that names the option, the value and what is allowed */
export function resolveSingletonRun(options: SingletonRunOptions, defaults: LockDefaults): ResolvedSingletonRun {
  checkKnownOptions('runSingleton', options, OPTION_NAMES);
  const { job, tick, overlap, onCrash, keepMs } = options;
  const target = { resource: jobResource(job), tick: checkResource(tick, 'runSingleton as its tick') };
  // Not undefined, which passes for an option that was left out.
  checkOneOf('overlap', overlap ?? null, ['skip', 'wait']);
  checkOneOf('onCrash', onCrash ?? null, ['skip', 'retry']);
  checkInteger('keepMs', keepMs ?? NaN, 1, Number.MAX_SAFE_INTEGER);
  // Runs may be long whatever the default: maxHoldMs is what limits one.
  const lock = { ...resolveLockOptions(options.lock, defaults), watchdog: true };
  // A claim that is forgotten before its lock expires could never be rescued.
  return { options, lock, keepMs: onCrash === 'retry' ? Math.max(keepMs, 2 * lock.leaseMs) : keepMs, target };
}

/**
 * The resource that a run of the job holds.
 *
 * @throws InvalidLockOptionsError when the name cannot be part of one
 */
export function jobResource(job: string): string {
  return checkResource(`cron:${checkResource(job, 'a singleton job as its name')}`, 'a singleton job by its name');
}
