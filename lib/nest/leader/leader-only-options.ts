import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { checkLockOptions } from '../../core/api/lock-options.js';
import { leaderResource } from '../../core/api/resource.js';
import { checkKnownOptions, checkOneOf, describeValue } from '../../core/api/validation.js';

/** What `@LeaderOnly` takes instead of a name. */
export interface LeaderOnlyOptions {
  /**
   * The leadership that the instances campaign for. All methods with the same name run on the same instance. Its lock
   * is `leader:<name>`.
   *
   * @allowed text of 1 to 505 bytes
   */
  name: string;
  /**
   * The lease of the leadership. When the leader dies, there is no leader for this long. All methods with one name
   * share one value.
   *
   * @allowed 50 ms to 24 h
   * @default 30000
   */
  leaseMs?: number;
  /**
   * What happens when the lease is lost while the method runs. `'abort'`: its `signal` aborts, and the result of the
   * method stands. `'throw'`: the call also rejects with `LeaseLostError` after the method has ended, even if an API
   * that was given the signal failed with its own `AbortError`.
   *
   * @default 'abort'
   */
  onLost?: 'abort' | 'throw';
  /**
   * The `name` of the lock service to use.
   *
   * @allowed text
   * @default the default one
   */
  lockService?: string;
}

/** Checked options, with their defaults. */
export interface ResolvedLeaderOnly {
  readonly name: string;
  readonly leaseMs: number | undefined;
  readonly onLost: 'abort' | 'throw';
  readonly lockService: string | undefined;
}

const OPTION_NAMES = [
  'name',
  'leaseMs',
  'onLost',
  'lockService',
] as const satisfies readonly (keyof LeaderOnlyOptions)[];

/**
 * Checks the options of the decorator, when the class is defined.
 *
 * @param where the decorated method, for messages
 * @throws InvalidLockOptionsError
 */
export function resolveLeaderOnly(given: string | LeaderOnlyOptions, where: string): ResolvedLeaderOnly {
  const options = typeof given === 'string' ? { name: given } : given;
  checkKnownOptions(`The leadership of ${where}`, options, OPTION_NAMES);
  const { name, leaseMs, onLost = 'abort', lockService } = options;
  leaderResource(name, `the leadership of ${where}`);
  if (leaseMs !== undefined) checkLockOptions({ leaseMs }, `The leadership of ${where}`);
  checkOneOf('onLost', onLost, ['abort', 'throw']);
  if (lockService !== undefined && (typeof lockService !== 'string' || lockService === '')) {
    throw new InvalidLockOptionsError(
      `lockService must be the name of a registration, not ${describeValue(lockService)}.`,
      'lockService',
    );
  }
  return { name, leaseMs, onLost, lockService };
}
