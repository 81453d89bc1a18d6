import { LeaseLostError } from '../../../kernel/api/lease-errors.js';
import { LOCK_OPTIONS, type OnLost } from '../../../kernel/api/lock-options.js';
import { Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';
import { leaderResource } from '../../../kernel/api/resource.js';
import { checkIsFilledIn, LOCK_SERVICE } from '../../../nest/decorators/lock-plan.js';
import type { LockedMethodDecorator } from '../../../nest/decorators/method-types.js';
import {
  declareLockService,
  describeMethod,
  markAsSkipping,
  mayBeSkipped,
  wrapMethod,
} from '../../../nest/decorators/method.js';
import { addLeaderOnlyMethod, sharedLeadership } from './leaderships.js';

/**
 * Decorates an async method that may return `undefined`. TypeScript rejects a method that is not async, or whose return
 * type does not include `undefined`.
 */
export type LeaderOnlyMethodDecorator = LockedMethodDecorator<[], undefined>;

/**
 * Runs the method on the instance that leads. On the others, it returns `undefined` without running. Each instance
 * campaigns from the start of the application. All methods that give the same name share one campaign.
 *
 * - `@Interval(1_000)` above `@LeaderOnly('mailer')` above `async sendMails(): Promise<void> {}`
 *
 * Errors that the method throws are passed on unchanged. `locks.current('leader:mailer')` returns the term.
 *
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid; when the application starts, if
 *   two methods that give the same name have different values of `leaseMs`
 * @throws LeaseLostError if the term is lost before the method has ended (see `onLost`)
 * @throws LockModuleMissingError if Nest did not create the object
 */
export function LeaderOnly(given: string | LeaderOnlyOptions): LeaderOnlyMethodDecorator {
  return (target: object, propertyKey: string | symbol, descriptor: PropertyDescriptor) => {
    const where = describeMethod(target, propertyKey);
    const { name, leaseMs, onLost, lockService } = resolveLeaderOnly(given, where);
    const lockServiceOf = declareLockService(target, lockService);
    wrapMethod(
      descriptor,
      where,
      (original) =>
        async function (this: object, ...args: unknown[]) {
          const leadership = sharedLeadership(lockServiceOf(this, where), name, leaseMs);
          const runs = mayBeSkipped(this, target, propertyKey, '@LeaderOnly');
          let finished: { readonly value: unknown } | undefined;
          const ran = leadership.run(async () => {
            runs();
            const value: unknown = await original.apply(this, args);
            finished = { value };
            return value;
          });
          if (onLost === 'throw') return ran;
          return ran.catch((error: unknown) => {
            if (finished && error instanceof LeaseLostError) return finished.value;
            throw error;
          });
        },
    );
    markAsSkipping(descriptor.value as object, '@LeaderOnly');
    addLeaderOnlyMethod(target, { where, name, leaseMs, lockService });
  };
}

/** The options of `@LeaderOnly`, in place of a name. */
export interface LeaderOnlyOptions {
  /**
   * The name of the leadership to campaign for. All methods with the same name run on the same instance. The lock is
   * `leader:<name>`.
   *
   * @allowed text of 1 to 505 bytes
   */
  name: string;
  /**
   * The length of the leader's lease. If the leader dies, there is no leader for up to this long. Use one value for all
   * methods with the same name.
   *
   * @allowed 50 ms to 24 h
   * @default 15000
   */
  leaseMs?: number;
  /**
   * Decides what a call does if its instance loses the leadership before the method has ended. `'throw'`: when the
   * method has ended, the call rejects with its error or, if it succeeded, with a `LeaseLostError` that contains the
   * result. `'ignore'`: the call resolves to the result. In both cases, the `signal` of the leader's lease aborts.
   *
   * @allowed `'throw'`, `'ignore'`
   * @default 'throw'
   */
  onLost?: OnLost;
  /**
   * The name of the lock service to use: its module option `service`.
   *
   * @allowed text
   * @default the default service
   */
  service?: string;
}

/** The name is checked with the decorated method, for the message. */
export const LEADER_ONLY_OPTIONS = new OptionTable({
  name: Option.checked<string>(),
  leaseMs: LOCK_OPTIONS.options.leaseMs,
  onLost: LOCK_OPTIONS.options.onLost,
  service: LOCK_SERVICE,
} satisfies OptionsOf<LeaderOnlyOptions>);

/** Checks the options of the decorator, when the class is defined. */
export function resolveLeaderOnly(given: string | LeaderOnlyOptions, where: string) {
  const options = typeof given === 'string' ? { name: given } : given;
  LEADER_ONLY_OPTIONS.check(`The leadership of ${where}`, options);
  const { name, leaseMs, onLost = LEADER_ONLY_OPTIONS.defaults.onLost, service: lockService } = options;
  leaderResource(name, `the leadership of ${where}`);
  checkIsFilledIn('name', name, `the leadership of ${where}`);
  return { name, leaseMs, onLost, lockService };
}
