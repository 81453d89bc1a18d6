import { InvalidLockOptionsError, LockError, LockUnavailableError } from '../api/errors.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import { LockReentryError } from '../api/lease-errors.js';
import { describeValue } from '../api/validation.js';
import type { Runtime } from '../holding/runtime.js';
import { plainOrQuoted } from '../util/quoted.js';
import type { Origin } from '../util/call-site.js';
import { attemptWasCutShort } from './acquire-errors.js';
import { waitBefore } from './waits.js';

/** `thrown`: the value that the strategy threw, which may be anything, or the error of an invalid return value. */
const faults = new WeakMap<object, { readonly resource: string; readonly thrown: unknown }>();

/**
 * Returns the error of a call whose retry strategy threw. Each call needs its own, because observers report this wait
 * by its error, and the strategy may throw the same object each time, or `undefined`.
 */
export function strategyFailed(resource: string, thrown: unknown): InvalidLockOptionsError {
  const error = new InvalidLockOptionsError(`retry.next() threw ${describe(thrown)}.`, 'retry', { cause: thrown });
  faults.set(error, { resource, thrown });
  return error;
}

/** Returns the error for the caller in place of one from {@link strategyFailed}. */
export function originalError(error: unknown): unknown {
  const fault = faults.get(error as object);
  return fault ? fault.thrown : error;
}

function describe(thrown: unknown): string {
  try {
    return describeValue(thrown);
  } catch {
    return 'a value that cannot be described';
  }
}

/** Adds the caller's frames to the error of a timer or a reply. Call it while the rejection travels to that code. */
export function completeError(
  error: unknown,
  { group }: Pick<ResolvedLockOptions, 'group'>,
  { observers }: Runtime,
): void {
  // Without a resource, the call itself made it.
  if (!(error instanceof LockError) || error.group !== undefined || error.resource === '') return;
  error.group = observers.groups.of(error.resource, group);
  if (error instanceof InvalidLockOptionsError || error instanceof LockReentryError) return;
  // The group of a leadership is its resource.
  if (group !== undefined && group !== error.resource) error.message = `${plainOrQuoted(group)}: ${error.message}`;
  Error.captureStackTrace(error, completeError);
}

/**
 * Completes the error of a call that waits for a resource without acquiring it. Its group depends on the name alone.
 */
export async function completed<T>(call: () => Promise<T>, deps: Runtime): Promise<T> {
  try {
    return await call();
  } catch (error) {
    completeError(error, { group: undefined }, deps);
    throw error;
  }
}

/** The errors that have the frames of a call. One loss may end several. */
const SHOWN = new WeakSet<LockError>();

/** Adds the frames of the caller to an error that a timer or a reply has made. As above, called on its way there. */
export function showCaller(error: LockError): void {
  if (SHOWN.has(error)) return;
  SHOWN.add(error);
  Error.captureStackTrace(error, showCaller);
}

/** @param origin the origin of a call whose lease the user would have had to release */
export function emitFailure(
  asked: string | readonly string[],
  options: ResolvedLockOptions,
  error: unknown,
  origin: Origin | undefined,
  { observers, clock }: Runtime,
): void {
  if (observers.onUnavailable !== undefined && error instanceof LockUnavailableError) {
    observers.onUnavailable(error, attemptWasCutShort(error, options) ? options.attemptTimeoutMs : undefined);
  }
  if (!observers.wants('notAcquired')) return;
  const { since = clock.now(), hasWaited = false } = waitBefore(error) ?? {};
  const fault = faults.get(error as object);
  const reason = fault?.thrown instanceof LockError ? fault.thrown : error;
  if (!(reason instanceof LockError)) return;
  const resources = typeof asked === 'string' ? [asked] : asked;
  const named = fault?.resource ?? reason.resource;
  const resource = resources.includes(named) ? named : resources[0]!;
  const call = observers.describeCall(resource, options);
  const waitedMs = clock.now() - since;
  observers.emit({ type: 'notAcquired', ...call, resources, waitedMs, hasWaited, error: reason });
  if (origin && observers.onOrigin) observers.onOrigin(origin);
}
