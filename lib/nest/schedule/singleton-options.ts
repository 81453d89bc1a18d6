import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { LEASE_LENGTH, LOCK_OPTIONS, type LockOptions, RUN_LEASE_MS } from '../../core/api/lock-options.js';
import { jobResource } from '../../core/api/resource.js';
import {
  checked,
  checkText,
  describeValue,
  flag,
  milliseconds,
  oneOf,
  type OptionsOf,
  OptionTable,
  pick,
} from '../../core/api/validation.js';
import { quote } from '../../core/util/quoted.js';
import {
  checkReruns,
  HISTORY_SIZE,
  MAX_CLOCK_SKEW,
  MAX_RERUNS,
  ON_CRASH,
  OVERLAP,
  SPREAD,
} from '../../core/singleton/singleton-run-options.js';
import { checkIsFilledIn, LOCK_SERVICE } from '../decorators/lock-plan.js';

/**
 * The options of all singleton jobs. The lock of a run has no label: one command claims the tick and takes the lock, and
 * it carries none. `inspect` and errors show the job by the name of its lock, `cron:<name>`.
 */
export interface SingletonJobOptions extends Pick<
  LockOptions,
  'leaseMs' | 'waitMs' | 'maxHoldMs' | 'attemptTimeoutMs' | 'warnAfterMs'
> {
  /**
   * The name of the job. It must be the same on every instance, and different from the name of any other job.
   *
   * @allowed 1 to 200 characters
   * @default class and method
   */
  name?: string;
  /**
   * What happens to a tick that is due while an earlier run has not ended, on any instance. `'skip'` drops the tick;
   * `'wait'` runs it when that run has ended. A job on a single date waits unless this is `'skip'`: it has no next tick.
   *
   * @default 'skip'
   */
  overlap?: 'skip' | 'wait';
  /**
   * Which lock service to use: the `service` of its registration.
   *
   * @allowed text
   * @default the default one
   */
  service?: string;
  /**
   * The lease of a run. It is renewed while the job runs, so it may be much shorter than the run. When the process
   * dies, the next run waits for this long. If the module states a `leaseMs`, that is the default.
   *
   * @allowed 50 ms to 24 h
   * @default 30000
   */
  leaseMs?: number;
  /**
   * How long to keep trying to claim a tick while Redis does not answer.
   *
   * @allowed 0 ms and more, or `Infinity`
   * @default 18000
   */
  waitMs?: number;
  /**
   * The longest time that a run keeps its lock. After that, the lock is lost.
   *
   * @allowed 50 ms and more
   * @default no limit
   */
  maxHoldMs?: number;
  /**
   * A run that keeps later ticks of its job from running for this long is reported once, by the event `overlapLong` and
   * by a warning: it may never end. It counts from when the first of these ticks was due. `Infinity`: never.
   *
   * @allowed 1 ms and more, or `Infinity`
   * @default 60000
   * @see docs/operations/logs.md#a-run-does-not-end
   */
  warnAfterMs?: number;
  /**
   * Each instance waits for a random part of this time before it asks for a tick. So each of many instances gets its
   * share of the ticks, and not all of them ask at the same moment. Of a cron job, at most half of the time to its next
   * tick counts. Of an interval and a time-out, it is at most half of their time.
   *
   * @allowed 0 ms to 1 h
   * @default 0
   * @see docs/operations/jobs.md#which-instance-runs-a-tick
   */
  spreadMs?: number;
  /**
   * How many runs the history of the job keeps in Redis. 0 keeps none. On a quorum there is no history.
   *
   * @allowed 0 to 1,000
   * @default 100
   * @see docs/operations/jobs.md
   */
  historySize?: number;
  /**
   * Whether the history keeps the messages of errors, cut at 200 bytes. Without it, it keeps their names and codes only.
   * A message may hold data of your users.
   *
   * @default false
   */
  historyMessages?: boolean;
}

/** The options of singleton jobs that `@SingletonCron` takes. */
export interface SingletonTickOptions extends SingletonJobOptions {
  /**
   * What happens to a run that does not finish because its process dies. `'skip'` leaves it unfinished; `'retry'`
   * lets another instance run the tick again, within a lease.
   *
   * @default 'skip'
   */
  onCrash?: 'skip' | 'retry';
  /**
   * With `onCrash: 'retry'`: how often a tick is run again whose runs do not finish. After that it has crashed and ends,
   * with an event `tickSkipped` (reason `crashed`) and an error in the log.
   *
   * @allowed 1 to 100
   * @default 2
   * @see docs/guide/cron.md#when-the-runner-dies
   */
  maxReruns?: number;
  /**
   * How far the clock of an instance may be from the clock of Redis. A tick that is due further ahead than this, by
   * the clock of Redis, is refused. A tick that was due longer ago than this and `waitMs` together (of `waitMs`, at
   * most an hour counts) is skipped as late.
   *
   * @allowed 1 s to 24 h
   * @default 600000
   */
  maxClockSkewMs?: number;
  /**
   * A tick that was due this long ago, and that no instance has claimed, was missed: it never starts any more. Longer
   * than a process may stand still. `spreadMs` is added to it. A tick before one that is claimed is missed at once.
   *
   * @allowed 1 s to 24 h
   * @default 60000
   * @see docs/operations/jobs.md#missed-ticks-misfire-catch-up-downtime
   */
  graceMs?: number;
  /**
   * What follows when ticks were missed, because no instance was up or Redis did not answer. `'runOnce'` runs the job
   * once for all of them, on one instance of the fleet; the run has `missed`. Not on a quorum, and not for a Date.
   *
   * @default 'skip'
   * @see docs/operations/jobs.md#missed-ticks-misfire-catch-up-downtime
   */
  onMissed?: 'skip' | 'runOnce';
  /**
   * With `onMissed: 'runOnce'`: the job runs only if the newest of the missed ticks was due within this time.
   *
   * @allowed 1 s to 366 days
   * @default 604800000
   */
  missedWithinMs?: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;

const { waitMs, maxHoldMs, attemptTimeoutMs, warnAfterMs } = LOCK_OPTIONS.options;

export const JOB_OPTIONS = new OptionTable({
  name: checked<string>(checkName),
  overlap: OVERLAP.default('skip'),
  service: LOCK_SERVICE,
  leaseMs: LEASE_LENGTH.default(RUN_LEASE_MS),
  waitMs,
  maxHoldMs,
  attemptTimeoutMs,
  warnAfterMs,
  spreadMs: SPREAD.default(0),
  historySize: HISTORY_SIZE.default(100),
  historyMessages: flag().default(false),
} satisfies OptionsOf<SingletonJobOptions>);

export const TICK_OPTIONS = new OptionTable({
  ...JOB_OPTIONS.options,
  onCrash: ON_CRASH.default('skip'),
  maxReruns: MAX_RERUNS,
  maxClockSkewMs: MAX_CLOCK_SKEW.default(10 * 60 * 1000),
  graceMs: milliseconds(1_000, DAY_MS).default(60_000),
  onMissed: oneOf(['skip', 'runOnce'] as const).default('skip'),
  missedWithinMs: milliseconds(1_000, 366 * DAY_MS).default(7 * DAY_MS),
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
  const { name, service: lockService, overlap, onCrash, maxReruns, maxClockSkewMs, spreadMs } = filled;
  if (name !== undefined) checkIsFilledIn('name', name, `the schedule of ${where}`);
  checkReruns(options, onCrash, `the schedule of ${where}`);
  if (options.missedWithinMs !== undefined && filled.onMissed === 'skip') {
    throw new InvalidLockOptionsError(
      `missedWithinMs in the schedule of ${where} says when the job runs for missed ticks, but onMissed is 'skip'. ` +
        `Set onMissed: 'runOnce', or leave missedWithinMs out.`,
      'missedWithinMs',
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
    spreadMs,
    history: pick(filled, 'historySize', 'historyMessages'),
    missed: pick(filled, 'graceMs', 'onMissed', 'missedWithinMs'),
    // What is left out has the defaults of the module.
    lock: pick(options, 'leaseMs', 'waitMs', 'maxHoldMs', 'attemptTimeoutMs'),
    warnAfterMs: options.warnAfterMs,
  };
}

/**
 * Checks that the claims of one interval or time-out do not meet those of the next.
 *
 * @param option what the time is called
 */
export function checkSpread({ spreadMs }: { readonly spreadMs: number }, option: string, ms: number): void {
  if (spreadMs <= ms / 2) return;
  throw new InvalidLockOptionsError(
    `spreadMs must be at most half of ${option}: ${Math.floor(ms / 2)}, not ${spreadMs}. The runs of two instances ` +
      'could meet otherwise.',
    'spreadMs',
  );
}

/** A job, for messages. @param where the class and the method */
export function describeJob(name: string | undefined, where: string): string {
  return name === undefined ? where : `the job ${quote(name)} (${where})`;
}

function checkName(option: string, name: unknown): void {
  checkText(option, name, /^[^]{1,200}$/, '1 to 200 characters');
  jobResource(name as string);
}
