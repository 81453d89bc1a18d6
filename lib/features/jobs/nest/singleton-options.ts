import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { LEASE_LENGTH, LOCK_OPTIONS, type LockOptions, RUN_LEASE_MS } from '../../../kernel/api/lock-options.js';
import { jobResource } from '../../../kernel/api/resource.js';
import { checkText, describeValue, Option, type OptionsOf, OptionTable, pick } from '../../../kernel/api/validation.js';
import { quote } from '../../../kernel/util/quoted.js';
import {
  checkReruns,
  HISTORY_SIZE,
  MAX_CLOCK_SKEW,
  MAX_RERUNS,
  ON_CRASH,
  OVERLAP,
  SPREAD,
} from '../core/singleton-run-options.js';
import { checkIsFilledIn, LOCK_SERVICE } from '../../../nest/decorators/lock-plan.js';

/**
 * The options of all singleton jobs. The lock of a run has no label: `inspect` and errors show the job by the name of
 * its lock, `cron:<name>`.
 */
export interface SingletonJobOptions extends Pick<LockOptions, 'attemptTimeoutMs'> {
  /**
   * The name of the job, the same on every instance and unique among jobs.
   *
   * @allowed 1 to 200 characters
   * @default class and method
   */
  name?: string;
  /**
   * `'skip'` drops a tick that is due during an earlier run on any instance; `'wait'`, the default for a job with a
   * single date, runs it afterwards.
   *
   * @default 'skip'
   */
  overlap?: 'skip' | 'wait';
  /**
   * The name of the lock service to use: its module option `service`.
   *
   * @allowed text
   * @default the default service
   */
  service?: string;
  /**
   * The length of a run's lease, which is renewed while the run lasts. If the process dies, the next run waits for up
   * to this long. If the module sets `leaseMs`, its value is the default.
   *
   * @allowed 50 ms to 24 h
   * @default 30000
   */
  leaseMs?: number;
  /**
   * How long an instance keeps trying to claim a tick while Redis doesn't answer.
   *
   * @allowed 0 ms or more, or `Infinity`
   * @default 18000
   */
  waitMs?: number;
  /**
   * The maximum time for a run. After that, the run loses its lock.
   *
   * @allowed 50 ms or more
   * @default no limit
   */
  maxHoldMs?: number;
  /**
   * Reports a run that has blocked later ticks of its job for this long, with the event `overlapLong` and a warning.
   * `Infinity` disables the report.
   *
   * @allowed 1 ms or more, or `Infinity`
   * @default 60000
   * @see docs/operations/logs.md#a-run-does-not-end
   */
  warnAfterMs?: number;
  /**
   * Waits for a random part of this time before claiming a tick, so that the instances share the ticks and don't all
   * ask Redis at once. A cron job waits for at most half the time to its next tick. With an interval or a timeout, more
   * than half of `intervalMs` or `dedupeWindowMs` is rejected.
   *
   * @allowed 0 ms to 1 h
   * @default 0
   * @see docs/operations/jobs.md#which-instance-runs-a-tick
   */
  jitterMs?: number;
  /**
   * The number of runs to keep in the job's history in Redis; 0 for none. A quorum keeps no history.
   *
   * @allowed 0 to 1,000
   * @default 100
   * @see docs/operations/jobs.md
   */
  historySize?: number;
  /**
   * `true` also keeps error messages in the history, truncated to 200 bytes. They may contain user data.
   *
   * @default false
   */
  historyMessages?: boolean;
}

/** The options of singleton jobs with a cron expression or a date. */
export interface SingletonTickOptions extends SingletonJobOptions {
  /**
   * If a process dies during a run, `'skip'` leaves the run unfinished; `'retry'` lets another instance rerun the tick
   * once the run's lease has expired.
   *
   * @default 'skip'
   */
  onCrash?: 'skip' | 'retry';
  /**
   * With `onCrash: 'retry'`: the maximum number of reruns of a tick. If the last one crashes too, no instance runs the
   * tick again.
   *
   * @allowed 1 to 100
   * @default 2
   * @see docs/guide/cron.md#when-the-runner-dies
   */
  maxReruns?: number;
  /**
   * The largest allowed difference between an instance's clock and Redis's. By Redis's clock, a tick that is due later
   * than this from now is skipped as early. A tick that was due longer ago than this plus `jitterMs` and `waitMs` (of
   * which at most one hour counts) is skipped as late.
   *
   * @allowed 1 s to 24 h
   * @default 600000
   */
  maxClockSkewMs?: number;
  /**
   * A tick counts as missed if no instance has claimed it this long (plus `jitterMs`) after its due time. Choose a time
   * longer than your event loop is ever blocked. Once a tick is claimed, all unclaimed ticks before it count as missed.
   *
   * @allowed 1 s to 24 h
   * @default 60000
   */
  graceMs?: number;
  /**
   * `'runOnce'` runs the job once for all missed ticks, on one instance, with `missed` set on the run; `'skip'`
   * doesn't. Not available on a quorum, or for a job with a single date.
   *
   * @default 'skip'
   * @see docs/operations/jobs.md#missed-ticks-also-called-misfires
   */
  onMissed?: 'skip' | 'runOnce';
  /**
   * With `onMissed: 'runOnce'`: runs the job only if the newest missed tick was due within this time.
   *
   * @allowed 1 s to 366 days
   * @default 604800000
   */
  catchUpWindowMs?: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;

const { waitMs, maxHoldMs, attemptTimeoutMs, warnAfterMs } = LOCK_OPTIONS.options;

export const JOB_OPTIONS = new OptionTable({
  name: Option.checked<string>(checkName),
  overlap: OVERLAP.default('skip'),
  service: LOCK_SERVICE,
  leaseMs: LEASE_LENGTH.default(RUN_LEASE_MS),
  waitMs,
  maxHoldMs,
  attemptTimeoutMs,
  warnAfterMs,
  jitterMs: SPREAD.default(0),
  historySize: HISTORY_SIZE.default(100),
  historyMessages: Option.flag().default(false),
} satisfies OptionsOf<SingletonJobOptions>);

export const TICK_OPTIONS = new OptionTable({
  ...JOB_OPTIONS.options,
  onCrash: ON_CRASH.default('skip'),
  maxReruns: MAX_RERUNS,
  maxClockSkewMs: MAX_CLOCK_SKEW.default(10 * 60 * 1000),
  graceMs: Option.milliseconds(1_000, DAY_MS).default(60_000),
  onMissed: Option.oneOf(['skip', 'runOnce'] as const).default('skip'),
  catchUpWindowMs: Option.milliseconds(1_000, 366 * DAY_MS).default(7 * DAY_MS),
} satisfies OptionsOf<SingletonTickOptions>);

/**
 * Checks the options of a singleton decorator, when the class is defined.
 *
 * @param table the options of this decorator
 */
export function resolveJobOptions(options: SingletonTickOptions, where: string, table: Pick<OptionTable, 'check'>) {
  if (typeof options === 'string') {
    throw new InvalidLockOptionsError(
      `The schedule of ${where} must be an object, not a text. For the name of the job, write { name: ${describeValue(options)} }.`,
      'name',
    );
  }
  table.check(`The schedule of ${where}`, options);
  const filled = TICK_OPTIONS.filled(options);
  const { name, service: lockService, overlap, onCrash, maxReruns, maxClockSkewMs, jitterMs } = filled;
  if (name !== undefined) checkIsFilledIn('name', name, `the schedule of ${where}`);
  checkReruns(options, onCrash, `the schedule of ${where}`);
  if (options.catchUpWindowMs !== undefined && filled.onMissed === 'skip') {
    throw new InvalidLockOptionsError(
      `catchUpWindowMs in the schedule of ${where} says when the job runs for missed ticks, but onMissed is 'skip'. ` +
        `Set onMissed: 'runOnce', or leave catchUpWindowMs out.`,
      'catchUpWindowMs',
    );
  }
  return {
    name,
    lockService,
    overlap,
    /** `overlap` of a tick on a single date. */
    overlapOnDate: options.overlap ?? 'wait',
    onCrash,
    maxReruns,
    maxClockSkewMs,
    jitterMs,
    history: pick(filled, 'historySize', 'historyMessages'),
    missed: pick(filled, 'graceMs', 'onMissed', 'catchUpWindowMs'),
    // Omitted options get the defaults of the module.
    lock: pick(options, 'leaseMs', 'waitMs', 'maxHoldMs', 'attemptTimeoutMs'),
    warnAfterMs: options.warnAfterMs,
  };
}

/**
 * Checks that the claims of one interval or time-out do not overlap the next ones.
 *
 * @param option the name of the time
 */
export function checkSpread({ jitterMs }: { readonly jitterMs: number }, option: string, ms: number): void {
  if (jitterMs <= ms / 2) return;
  throw new InvalidLockOptionsError(
    `jitterMs must be at most half of ${option}: ${Math.floor(ms / 2)}, not ${jitterMs}. Otherwise the runs of two instances ` +
      'could overlap.',
    'jitterMs',
  );
}

/** Describes a job for messages. @param where the class and the method */
export function describeJob(name: string | undefined, where: string): string {
  return name === undefined ? where : `the job ${quote(name)} (${where})`;
}

function checkName(option: string, name: unknown): void {
  checkText(option, name, /^[^]{1,200}$/, '1 to 200 characters');
  jobResource(name as string);
}
