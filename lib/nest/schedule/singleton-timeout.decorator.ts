import { Timeout } from '@nestjs/schedule';
import { milliseconds, type OptionsOf, OptionTable } from '../../core/api/option-table.js';
import { checkInteger } from '../../core/api/validation.js';
import { type JobMethodDecorator, singletonMethod } from './singleton-method.js';
import { JOB_OPTIONS, resolveJobOptions, type SingletonJobOptions } from './singleton-options.js';

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

const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;
const DAY_MS = 24 * 60 * 60 * 1000;

export const TIMEOUT_OPTIONS = new OptionTable({
  ...JOB_OPTIONS.options,
  onceWithinMs: milliseconds(1_000, DAY_MS).default(10 * 60 * 1000),
} satisfies OptionsOf<SingletonTimeoutOptions>);

/**
 * `@Timeout`, but of the instances that start together, within `onceWithinMs`, only one runs the method. Needs
 * `ScheduleModule.forRoot()`.
 *
 * @param timeoutMs milliseconds after the start of the application, 0 to 2147483647
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid
 */
export function SingletonTimeout(timeoutMs: number, options: SingletonTimeoutOptions = {}): JobMethodDecorator {
  checkInteger('timeoutMs', timeoutMs, 0, LONGEST_TIMEOUT_MS);
  const keepMs = options?.onceWithinMs ?? TIMEOUT_OPTIONS.defaults.onceWithinMs;
  const schedule = options?.name === undefined ? Timeout(timeoutMs) : Timeout(options.name, timeoutMs);
  return singletonMethod(
    (where) => resolveJobOptions(options, where, TIMEOUT_OPTIONS),
    schedule,
    () => () => ({ tick: 'timeout', keepMs }),
  );
}
