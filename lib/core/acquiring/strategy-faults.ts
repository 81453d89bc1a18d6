import { InvalidLockOptionsError } from '../api/errors.js';
import { describeValue } from '../api/validation.js';

/** What the retry strategy of a caller has done wrong. */
interface StrategyFault {
  /** The resource that was waited for. */
  readonly resource: string;
  /** What the caller gets: what its strategy has thrown, which may be anything, or the error of a wrong answer. */
  readonly thrown: unknown;
}

/** By the error that ends the call inside this package. */
const faults = new WeakMap<object, StrategyFault>();

/**
 * The error of a call that ends because its retry strategy threw. Each call has its own, even where the strategy throws
 * the same object each time, or `undefined`: the observers are told of the wait of this call.
 */
export function strategyFailed(resource: string, thrown: unknown): InvalidLockOptionsError {
  const error = new InvalidLockOptionsError(`retry.next() threw ${describe(thrown)}.`, 'retry', { cause: thrown });
  faults.set(error, { resource, thrown });
  return error;
}

export function strategyFault(error: unknown): StrategyFault | undefined {
  return faults.get(error as object);
}

/** What the caller gets in place of an error that {@link strategyFailed} made. */
export function thrownBy(error: unknown): unknown {
  const fault = strategyFault(error);
  return fault ? fault.thrown : error;
}

function describe(thrown: unknown): string {
  try {
    return describeValue(thrown);
  } catch {
    return 'a value that cannot be described';
  }
}
