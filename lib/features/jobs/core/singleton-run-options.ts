import {
  type LockOptions,
  type ResolvedDefaults,
  type ResolvedLockOptions,
  resolveLockOptions,
} from '../../../kernel/api/lock-options.js';
import type { Lease } from '../../../kernel/api/lease.js';
import { checkResource, jobResource } from '../../../kernel/api/resource.js';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import {
  MAX_EARLY_MS,
  MAX_SPREAD_MS,
  MAX_TRY_MS,
  type DueWindow,
  type Tick,
  type ClaimMetadata,
  type ScheduleOfOther,
  type MissedSpan,
} from './job-claims.js';
import { Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';

/** Options for the ticks of one singleton job. */
export interface SingletonRunOptions {
  /**
   * The name of the job, the same on every instance. Its runs hold the resource `cron:<job>`.
   *
   * @allowed 1 to 200 characters
   */
  readonly job: string;
  /**
   * Identifies the tick: the same text on every instance.
   *
   * @allowed text
   */
  readonly tick: string;
  /**
   * `'skip'` drops a tick that is due during an earlier run on any instance; `'wait'` runs it afterwards.
   */
  readonly overlap: 'skip' | 'wait';
  /**
   * If a process dies during a run, `'skip'` leaves the run unfinished; `'retry'` lets another instance rerun the tick
   * once the run's lease has expired.
   */
  readonly onCrash: 'skip' | 'retry';
  /**
   * With `onCrash: 'retry'`: the maximum number of reruns of a tick. If the last one crashes too, no instance runs the
   * tick again.
   *
   * @allowed 1 to 100
   * @default 2
   */
  readonly maxReruns?: number | undefined;
  /**
   * Time for which Redis remembers that the tick was claimed, so that no other instance runs it. With `onCrash:
   * 'retry'`, at least two leases are used. For a tick without `due`, the smallest value of all instances applies.
   *
   * @allowed 1 ms or more
   */
  readonly claimTtlMs: number;
  /** The time at which the tick is due. @default none */
  readonly due?:
    | {
        /**
         * The due time of the tick in epoch milliseconds, if it has one. Then Redis's clock decides whether the tick
         * may still start, and no tick older than the last claimed one starts. Redis keeps the claim for as long as
         * these checks need it.
         *
         * @allowed 0 or more
         */
        readonly at: number;
        /**
         * The largest allowed difference between an instance's clock and Redis's. By Redis's clock, the tick is skipped
         * if its due time is further in the future than this, or further in the past than this plus `jitterMs` and
         * `waitMs`. At most an hour of `waitMs` counts.
         *
         * @allowed 1 s to 24 h
         */
        readonly maxClockSkewMs: number;
      }
    | undefined;
  /**
   * The number of runs to keep in the job's history in Redis. With 0, a job that isn't registered and has no `due`
   * leaves no key once its claim has expired.
   *
   * @allowed 0 to 1,000
   * @default 100
   */
  readonly historySize?: number | undefined;
  /**
   * `true` also keeps error messages in the history, truncated to 200 bytes. They may contain user data.
   *
   * @default false
   */
  readonly historyMessages?: boolean | undefined;
  /**
   * Waits for a random part of this time before claiming the tick, so that the instances share the ticks. `waitMs`
   * starts after this wait.
   *
   * @allowed 0 ms to 1 h
   * @default 0
   */
  readonly jitterMs?: number | undefined;
  /**
   * `true` for a run that a person or program requests. Give it its own `tick` and no `due`. It fails if the
   * application shuts down or, with `overlap: 'skip'`, if an earlier run has not ended.
   *
   * @default false
   */
  readonly manual?: boolean | undefined;
  /**
   * Options for the lock of the run. `waitMs` is how long to keep trying to claim the tick while Redis doesn't answer.
   *
   * @allowed `leaseMs`, `waitMs`, `maxHoldMs`, `attemptTimeoutMs`
   */
  readonly lock: Pick<LockOptions, 'leaseMs' | 'waitMs' | 'maxHoldMs' | 'attemptTimeoutMs'>;
}

/** One run of a tick: the parameter of the job. */
export interface SingletonRun {
  readonly job: string;
  /** Identifies the tick: for a cron job, the time it was scheduled for, as an ISO string. A rerun has the same tick. */
  readonly tick: string;
  /** `true` if another instance has claimed this tick already, may have started its run, and did not finish it. */
  readonly rerun: boolean;
  /** The attempt at the tick: 1 for the first run, 2 for the first rerun. */
  readonly attempt: number;
  /**
   * The missed ticks, if this is the one run that catches up on them; its `tick` is then a unique text instead of a
   * time.
   */
  readonly missed?: MissedSpan;
  /** `true` if a person or a program requested this run, not the schedule. */
  readonly manual: boolean;
  /** The lease of the job's lock, with its `signal` and `fencingToken`. */
  readonly lease: Lease;
}

/** When the ticks of a job are due, in milliseconds since the Unix epoch. */
export interface JobTicks {
  /** The first tick after a time; `undefined` if there is none any more. */
  after(time: number): number | undefined;
  /** Counts the ticks after a time and not after another. */
  between(after: number, until: number, most: number): Promise<{ readonly count: number }>;
}

/** The schedule around one tick, for the record of the job. */
export interface RunPlan extends Pick<ClaimMetadata, 'schedule' | 'previous' | 'next' | 'isDate'> {
  /** @default 'tick', or 'manual' */
  readonly kind?: ClaimMetadata['kind'];
  /**
   * Accounts ticks that were missed after this one; resolves to `false` if there are none. Then the tick is claimed
   * again. If the store did not account them, it is retried within `waitMs`, and then the tick is not claimed.
   */
  readonly onGap?: (after: number) => Promise<boolean>;
  /** Called when the claim of a tick that is a time was answered: no instance misses this tick any more. */
  readonly onAccounted?: () => void;
  /** The ticks of the job. A run that keeps some from running for `warnAfterMs` is reported. @default not reported */
  readonly ticks?: JobTicks | undefined;
  /** @default the module's */
  readonly warnAfterMs?: number | undefined;
  /** Called when instances have fired the job by another schedule for longer than a deployment takes. */
  readonly onOther?: (other: ScheduleOfOther) => void;
  /** Called when a claim found no record of the job: the store has lost it, or no instance has registered it yet. */
  readonly onUnknown?: () => void;
}

/** The work of one run. */
export type SingletonWork<T> = (lease: Lease, run: SingletonRun) => T | Promise<T>;

type DueTick = NonNullable<SingletonRunOptions['due']>;

export const OVERLAP = Option.oneOf(['skip', 'wait'] as const);
export const ON_CRASH = Option.oneOf(['skip', 'retry'] as const);
export const MAX_RERUNS = Option.atLeast(1, 'reruns', 100).default(2);
export const HISTORY_SIZE = Option.atLeast(0, 'runs', 1_000);
export const SPREAD = Option.milliseconds(0, MAX_SPREAD_MS);
export const MAX_CLOCK_SKEW = Option.milliseconds(1_000, MAX_EARLY_MS);

const DUE_OPTIONS = new OptionTable({
  at: Option.atLeast(0, 'milliseconds since 1970').required(),
  maxClockSkewMs: MAX_CLOCK_SKEW.required(),
} satisfies OptionsOf<DueTick>);

/** Names of resources, and `lock`, are checked when they are resolved. */
export const SINGLETON_RUN_OPTIONS = new OptionTable({
  job: Option.checked<string>(),
  tick: Option.checked<string>(),
  overlap: OVERLAP.required(),
  onCrash: ON_CRASH.required(),
  maxReruns: MAX_RERUNS,
  claimTtlMs: Option.milliseconds(1).required(),
  due: Option.checked<DueTick>((option, value) =>
    DUE_OPTIONS.check('runSingleton as its due', value as object, `${option}.`),
  ),
  historySize: HISTORY_SIZE.default(100),
  historyMessages: Option.flag().default(false),
  jitterMs: SPREAD.default(0),
  manual: Option.flag().default(false),
  lock: Option.checked<SingletonRunOptions['lock']>(),
} satisfies OptionsOf<SingletonRunOptions>);

export function resolveSingletonRun(options: SingletonRunOptions, defaults: ResolvedDefaults) {
  SINGLETON_RUN_OPTIONS.check('runSingleton', options);
  const { job, tick, onCrash, claimTtlMs, due: time, jitterMs = 0 } = options;
  if (options.manual && time !== undefined) {
    throw new InvalidLockOptionsError(
      'A run with manual: true has no due time, because it follows no schedule. Leave due out.',
      'due',
    );
  }
  checkReruns(options, onCrash, 'runSingleton');
  const target: Tick = { resource: jobResource(job), tick: checkResource(tick, 'runSingleton as its tick') };
  // Not longer than a store that has lost its locks grants none.
  const leaseMs = Math.min(defaults.runLeaseMs, defaults.restartQuarantineMs ?? Infinity);
  // A run may be long, whatever the module default: only maxHoldMs limits it.
  const lock: ResolvedLockOptions = {
    ...resolveLockOptions(options.lock, { ...defaults, leaseMs }),
    // Its waitMs is that time.
    unavailableMs: Infinity,
    watchdog: true,
    group: job,
    warnAfterMs: Infinity,
  };
  const due = time === undefined ? undefined : resolveDue(time, lock.waitMs, jitterMs);
  // A claim that is forgotten before its lock expires could never be taken over.
  const leastMs = Math.max(onCrash === 'retry' ? 2 * lock.leaseMs : 0, due ? windowMs(due) : 0);
  return { options, lock, claimTtlMs: Math.max(claimTtlMs, leastMs), target, due };
}

/** @param where the place, for messages */
export function checkReruns(
  { maxReruns }: Pick<SingletonRunOptions, 'maxReruns'>,
  onCrash: SingletonRunOptions['onCrash'],
  where: string,
): void {
  if (maxReruns === undefined || onCrash === 'retry') return;
  throw new InvalidLockOptionsError(
    `maxReruns in ${where} limits how often a tick is run again after a crash, but onCrash is 'skip', so none is. Set ` +
      `onCrash: 'retry', or leave maxReruns out.`,
    'maxReruns',
  );
}

function resolveDue({ at, maxClockSkewMs }: DueTick, waitMs: number, jitterMs: number): DueWindow {
  return { at, earlyMs: maxClockSkewMs, lateMs: maxClockSkewMs + jitterMs + Math.min(waitMs, MAX_TRY_MS) };
}

/** A claim is remembered this much longer than the window, so that they never end in the same millisecond. */
const MARGIN_MS = 1_000;

/**
 * The shortest time for which the claim of a tick must be remembered, in milliseconds.
 *
 * No tick T starts twice, however long a process is blocked or suspended. A new claim of T is accepted only while the
 * store's clock is between T - earlyMs and T + lateMs. The claim is kept for longer than this window, so the store
 * either remembers it or refuses T as late. The last claimed tick L of the job is also kept, for LAST_TICK_KEEP_MS,
 * which is longer than any window. T <= L is refused, so the rule holds even if processes have different windows, as
 * when a deployment changes `maxClockSkewMs`. An L beyond now + earlyMs could not be accepted now: the store's clock
 * was wrong and has been set back. Such an L is ignored, or the job would stop until then.
 */
function windowMs({ earlyMs, lateMs }: DueWindow): number {
  return earlyMs + lateMs + MARGIN_MS;
}
