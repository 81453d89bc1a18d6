import 'reflect-metadata';
import { type LeaderOnlyOptions, resolveLeaderOnly } from './leader-only-options.js';
import { LEADER_ONLY, type LeaderOnlyMethod, leaderOnlyMethodsOf } from './leader.explorer.js';
import { runUnder } from '../decorators/lock-call.js';
import { declareLockService, describeMethod, markAsSkipping, wrapMethod } from '../decorators/method.js';
import type { LockedMethodDecorator } from '../decorators/method-types.js';
import { sharedLeadership } from './shared-leadership.js';

export type { LeaderOnlyOptions } from './leader-only-options.js';

/**
 * Decorates an async method that may return `undefined`. TypeScript refuses a method that is not async, or whose return
 * type does not include `undefined`.
 */
export type LeaderOnlyMethodDecorator = LockedMethodDecorator<[], undefined>;

/**
 * Runs the method on the instance that leads. On the others, it returns `undefined` without running. Each instance
 * campaigns from the start of the application. All methods with the same name share one campaign.
 *
 * - `@Interval(1_000)` above `@LeaderOnly('mailer')` above `async sendMails(): Promise<void> {}`
 *
 * The method's own errors pass through untouched. The term is `locks.current('leader:mailer')`.
 *
 * @throws InvalidLockOptionsError when the class is defined, if an option is invalid; when the application starts, if
 *   two methods with the same name have a different `leaseMs`
 * @throws LockModuleMissingError when Nest did not create the object
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
          return leadership.run((term) => runUnder(term, onLost, () => original.apply(this, args)));
        },
    );
    markAsSkipping(descriptor.value as object, '@LeaderOnly');
    const method: LeaderOnlyMethod = { where, name, leaseMs, lockService };
    // Kept on the class, because a decorator above may replace the method.
    Reflect.defineMetadata(LEADER_ONLY, [...leaderOnlyMethodsOf(target), method], target);
  };
}
