import { InvalidLockOptionsError, LockBusyError } from '../../core/api/errors.js';
import { quote } from '../../core/util/quoted.js';
import { InterceptedCall } from '../request/intercepted-call.js';
import { hasMetadataOf, ON_CONTROLLERS, ON_GATEWAYS, ON_RESOLVERS } from '../request/known-handlers.js';
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
import { isAbortedBy } from '../../core/util/signals.js';
import { LeaseLostError } from '../../core/api/lease-errors.js';
import { showCaller } from '../../core/acquiring/failed-calls.js';
import type { Lease, LockedWork } from '../../core/api/lease.js';
import type { RedisLockService } from '../redis-lock.service.js';

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

/**
 * Does the work under the lock of a plan. The result or error of the work passes through untouched, even a busy error
 * of its own.
 *
 * @param self `this` of the function `onBusy`
 * @param args what it is called with after the error
 * @param signal ends the wait for the lock
 */
export async function runLocked<T>(
  service: RedisLockService,
  plan: Pick<LockPlan<never>, 'onBusy' | 'onLost' | 'using'>,
  resources: readonly string[],
  work: LockedWork<T>,
  self: unknown,
  args: readonly unknown[],
  signal?: AbortSignal,
): Promise<T> {
  let held: Lease | undefined;
  const underLease = (lease: Lease): Promise<T> => {
    held = lease;
    return runUnlessLost(lease, plan.onLost, work);
  };
  try {
    return await plan.using(service, resources, underLease, signal);
  } catch (error) {
    // A renewal or a timer has made the loss.
    if (held && error instanceof LeaseLostError && error === held.signal.reason) showCaller(error);
    if (held || plan.onBusy === 'throw') throw error;
    if (!(error instanceof LockBusyError)) throw error;
    if (plan.onBusy === 'skip') return undefined as T;
    const onBusy = plan.onBusy as (this: unknown, busy: LockBusyError, ...args: readonly unknown[]) => T | Promise<T>;
    return await onBusy.call(self, error, ...args);
  }
}

/** @throws LeaseLostError unless the work has transferred the lease, which is no loss */
function checkHeld(lease: Lease): void {
  try {
    lease.assertHeld();
  } catch (error) {
    if (!(error instanceof LeaseLostError && error.reason === 'transferred')) throw error;
  }
}

/**
 * Does the work. With `onLost: 'throw'`, it rejects with the loss of the lease, also where the work failed because the
 * signal of the lease aborted.
 */
export async function runUnlessLost<L extends Lease, T>(
  lease: L,
  onLost: LockPlan<never>['onLost'],
  work: (lease: L) => T | Promise<T>,
): Promise<T> {
  if (onLost === 'abort') return work(lease);
  try {
    const result = await work(lease);
    checkHeld(lease);
    return result;
  } catch (error) {
    throw isAbortedBy(lease.signal, error) ? lease.signal.reason : error;
  }
}
