import { Timeout } from '@nestjs/schedule';
import { milliseconds, type OptionsOf, OptionTable } from '../../core/api/option-table.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import {
  checkSpread,
  JOB_OPTIONS,
  readTimedJob,
  resolveJobOptions,
  type SingletonJobOptions,
  type TimedJobArguments,
} from './singleton-options.js';

/** The options of `@SingletonTimeout`. */
export interface SingletonTimeoutOptions extends SingletonJobOptions {
  /**
   * After a run, no other instance runs the job for this long: longer than a deployment takes, and shorter than the
   * time between two deployments.
   *
   * @allowed 1 s to 24 h
   * @default 600000
   */
  onceWithinMs?: number;
}

const RANGE = ['timeoutMs', 0, 2 ** 31 - 1] as const;
const DAY_MS = 24 * 60 * 60 * 1000;

export const TIMEOUT_OPTIONS = new OptionTable({
  ...JOB_OPTIONS.options,
  onceWithinMs: milliseconds(1_000, DAY_MS).default(10 * 60 * 1000),
} satisfies OptionsOf<SingletonTimeoutOptions>);

/**
 * `@Timeout`, but of the instances that start together, within `onceWithinMs`, only one runs the method. Needs
 * `ScheduleModule.forRoot()`.
 *
 * ```ts
 * @SingletonTimeout(5_000)
 * @SingletonTimeout('warm-cache', 5_000, { onceWithinMs: 60_000 })
 * ```
 *
 * The method may be sync, as with `@Timeout`. A call of it then returns a promise all the same.
 *
 * @param nameOrMs milliseconds after the start of the application, 0 to 2147483647; or the name of the job, before the
 *   milliseconds
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid
 */
export function SingletonTimeout<N extends string | number>(
  nameOrMs: N,
  ...rest: TimedJobArguments<N, SingletonTimeoutOptions>
): JobMethodDecorator {
  const { ms, options } = readTimedJob<SingletonTimeoutOptions>(nameOrMs, rest, RANGE);
  const keepMs = options?.onceWithinMs ?? TIMEOUT_OPTIONS.defaults.onceWithinMs;
  const schedule = options?.name === undefined ? Timeout(ms) : Timeout(options.name, ms);
  return singletonMethod(
    (where) => {
      const resolved = resolveJobOptions(options, where, TIMEOUT_OPTIONS);
      checkSpread(resolved, 'onceWithinMs', keepMs);
      return resolved;
    },
    schedule,
    () => ({ now: () => ({ tick: 'timeout', keepMs }) }),
  );
}
