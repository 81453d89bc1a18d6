import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { quote } from '../../core/util/quoted.js';
import { InterceptedCall } from '../request/intercepted-call.js';
import { hasMetadataOf, ON_CONTROLLERS, ON_GATEWAYS, ON_RESOLVERS } from '../request/known-handlers.js';
import { runLocked } from './lock-call.js';
import type { LockPlan } from './lock-plan.js';
import { mayBeSkipped } from './running-job.js';
import { declareLockService, describeMethod, markAsSkipping, wrapMethod } from './method.js';
import {
  addLockedMethod,
  type LockedMethod,
  lockedMethodsOf,
  refusalOfFirstCall,
} from '../transactions/transaction-order.js';
import type { LockedMethodDecorator } from './method-types.js';
import { describeStream, endStream, isStreamedResult } from '../request/streamed-result.js';

/**
 * The compiler refuses a second argument, and JavaScript would drop it.
 *
 * @throws InvalidLockOptionsError
 */
export function checkIsOnlyArgument(decorator: string, given: readonly unknown[]): void {
  if (given.length <= 1) return;
  throw new InvalidLockOptionsError(
    `@${decorator} takes one argument, not ${given.length}. Write the key into the options: @${decorator}({ key: ..., ... }).`,
    'decorator',
  );
}

/**
 * Makes a decorator that runs a method under a lock.
 *
 * @param decorator its name, for messages
 * @param read checks the options, once for each method; `where` is the method, for its errors
 */
export function lockMethod<A extends readonly unknown[], B, O extends readonly unknown[]>(
  decorator: string,
  read: (where: string) => LockPlan<A>,
): LockedMethodDecorator<A, B, O> {
  return (target: object, propertyKey: string | symbol, descriptor: PropertyDescriptor) => {
    const where = describeMethod(target, propertyKey);
    const plan = read(where);
    checkOtherLocks(target, propertyKey, where, plan);
    const lockServiceOf = declareLockService(target, plan.lockService);
    const handler = { declaredBy: target, name: propertyKey };
    const skipping =
      plan.onBusy === 'throw'
        ? undefined
        : `@${decorator} with ${plan.onBusy === 'skip' ? "onBusy: 'skip'" : 'a function as onBusy'}`;
    /** Found out at the first call, when all decorators have been applied. */
    let isHandler: boolean | undefined;
    /** Found out at the first call, for the same reason: `null` if its calls are made. */
    let refusal: Error | null | undefined;
    wrapMethod(
      descriptor,
      where,
      (original) =>
        async function locked(this: object, ...args: unknown[]) {
          const service = lockServiceOf(this, where);
          const resources = plan.resources(this, args as unknown as A);
          const call = InterceptedCall.comingTo(handler, plan);
          const work = (): unknown =>
            call ? call.pass(plan, () => original.apply(this, args)) : original.apply(this, args);
          if (call?.covers(plan, resources)) return work();
          if (refusal === undefined) refusal = refusalOfFirstCall(service, target, method, locked) ?? null;
          if (refusal !== null) throw refusal;
          let begin = work;
          if (skipping !== undefined) {
            const runs = mayBeSkipped(this, target, propertyKey, skipping);
            begin = () => {
              runs();
              return work();
            };
          }
          const result = await runLocked(service, plan, resources, begin, this, args);
          isHandler ??= hasMetadataOf(
            (this as Record<string | symbol, object>)[propertyKey] ?? original,
            SENDING_HANDLERS,
          );
          if (isHandler && isStreamedResult(result)) throw refuseStream(result, where);
          return result;
        },
    );
    if (plan.onBusy === 'skip') markAsSkipping(descriptor.value as object, skipping!);
    const method: LockedMethod = {
      name: propertyKey,
      where,
      decorator: `@${decorator}`,
      lockService: plan.lockService,
      group: plan.group,
      mode: plan.mode,
      ignoresTransaction: plan.ignoresTransaction,
      skips: plan.onBusy === 'skip',
      minHoldMs: plan.minHoldMs,
      fixed: plan.fixed,
      wrapped: descriptor.value as LockedMethod['wrapped'],
    };
    addLockedMethod(target, method);
  };
}

/** @throws InvalidLockOptionsError where each call would wait for a lock that a decorator below already holds */
function checkOtherLocks(
  target: object,
  propertyKey: string | symbol,
  where: string,
  { fixed = [], mode, lockService }: LockPlan<never>,
): void {
  if (mode !== 'exclusive') return;
  for (const other of lockedMethodsOf(target)) {
    if (other.name !== propertyKey || other.mode !== 'exclusive' || other.lockService !== lockService) continue;
    const shared = other.fixed?.find((resource) => fixed.includes(resource));
    if (shared === undefined) continue;
    throw new InvalidLockOptionsError(
      `${where} is locked by ${quote(shared)} twice, so each call would wait for itself. Remove one of the two decorators.`,
      'key',
    );
  }
}

/** Handlers whose result Nest sends to the client, also if it is a stream. */
const SENDING_HANDLERS = [...ON_CONTROLLERS, ...ON_GATEWAYS, ...ON_RESOLVERS];

/** Refused, because the rest of the stream would be sent without the lock. */
function refuseStream(result: object, where: string): InvalidLockOptionsError {
  endStream(result);
  return new InvalidLockOptionsError(
    `${where} returned ${describeStream(result)}, which Nest would send after the lock is released: the lock of a ` +
      `method ends with the method. Use @LockHandler, which holds the lock until everything is sent, or return a ` +
      `complete result.`,
    'decorator',
  );
}
