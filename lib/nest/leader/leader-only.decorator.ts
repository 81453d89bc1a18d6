import 'reflect-metadata';
import { type LeaderOnlyOptions, resolveLeaderOnly } from './leader-only-options.js';
import { LEADER_ONLY, type LeaderOnlyMethod, leaderOnlyMethodsOf } from './leader.explorer.js';
import { runUnder } from '../decorators/lock-call.js';
import { type AsyncMethod, declareLockService, describeMethod, wrapMethod } from '../decorators/method.js';
import { sharedLeadership } from './shared-leadership.js';

export type { LeaderOnlyOptions } from './leader-only-options.js';

/**
 * Decorates an async method that may return `undefined`. One that is not async, or whose callers are not told that it may
 * return `undefined`, is an error at compile time.
 */
export type LeaderOnlyMethodDecorator = <M extends AsyncMethod>(
  target: object,
  propertyKey: string | symbol,
  descriptor: TypedPropertyDescriptor<M> & MayBeSkipped<M>,
) => void;

/** Nothing where the method's type allows for `undefined`; otherwise a type that explains. */
type MayBeSkipped<M extends AsyncMethod> =
  undefined extends Awaited<ReturnType<M>>
    ? unknown
    : { 'The method returns undefined where this instance does not lead: add it to the return type': ReturnType<M> };

/**
 * Runs the method on the instance that leads, and skips it on all others: there it returns `undefined`. The instance stands
 * as a candidate from the start of the application, one for all methods with the same name.
 *
 * ```ts
 * @Interval(1_000)
 * @LeaderOnly('mailer')
 * async sendMails(): Promise<void> {}
 * ```
 *
 * The method's own errors pass through untouched. The term is `locks.current('leader:mailer')`.
 *
 * @throws InvalidLockOptionsError when the class is defined with an option that cannot be right; the application does not
 *   boot where two methods give one name different leases
 * @throws LockModuleMissingError when the object was not made by Nest
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
    const method: LeaderOnlyMethod = { where, name, leaseMs, lockService };
    // On the class: a decorator above that replaces the method cannot hide it.
    Reflect.defineMetadata(LEADER_ONLY, [...leaderOnlyMethodsOf(target), method], target);
  };
}
