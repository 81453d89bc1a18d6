import { acquireForeign } from '../acquiring/foreign-wait.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { ForeignHold } from '../holding/foreign-hold.js';
import type { AlsoLock } from '../holding/foreign-locks.js';
import { type Grant, Hold } from '../holding/hold.js';
import { releaseInStore } from '../holding/release-in-store.js';
import { retryUnexecuted } from '../store/ask.js';
import type { AsyncContext } from '../util/async-contexts.js';
import { onAbort } from '../util/signals.js';
import { extend } from './changes.js';
import type { LeaseDeps } from './lease-deps.js';

/**
 * The hold of a call that has our lock and waits for the other one. The watchdog renews it, and a shutdown waits for
 * its end. Observers do not hear of it: no caller has a lease yet.
 */
export function beginWait(grant: Grant, options: ResolvedLockOptions, deps: LeaseDeps, caller?: AsyncContext): Hold {
  const { clock, active, watchdog, localQueues } = deps;
  const losses = {
    lost(hold: Hold): void {
      watchdog.unwatch(hold);
      localQueues.lost(hold);
    },
    stoodStillMs: (since: number) => watchdog.stoodStillMs(since),
  };
  const renewed = { ...options, watchdog: true, maxHoldMs: Infinity, warnAfterMs: Infinity };
  const waiting = new Hold(grant.storeLease, renewed, clock, losses, caller, grant.grantedAt);
  active.add(waiting);
  watchdog.watch(waiting);
  return waiting;
}

/** A call that has our lock and wants the other one. */
interface ForeignCall {
  readonly options: ResolvedLockOptions;
  readonly also: AlsoLock;
  readonly startedAt: number;
  /** Of our lock. */
  readonly grant: Grant;
}

/**
 * Waits for the lock of the other library, within the `waitMs` of the call.
 *
 * @throws LockError of the kind that says why it was not had; then nothing of it is held
 */
export async function waitForForeign(
  waiting: Hold,
  { options, also, startedAt, grant }: ForeignCall,
  deps: LeaseDeps,
): Promise<ForeignHold> {
  const { resource } = waiting.owner;
  const closing = deps.closingHere();
  // First, because opening it may throw.
  const foreign = deps.foreignLocks.claim(resource, also);
  const over = new AbortController();
  const abort = (): void => over.abort();
  waiting.onOver(abort);
  closing.addEventListener('abort', abort, { once: true });
  const stopListening = options.signal && onAbort(options.signal, abort);
  if (closing.aborted || options.signal?.aborted) abort();
  const { isBusyFinal = options.waitMs === 0, isPatient = false } = also;
  try {
    const wait = { resource, options, isBusyFinal, isPatient, startedAt, grant, closing, signal: over.signal };
    await acquireForeign(foreign, wait, deps);
  } catch (error) {
    // Our own loss ends the wait too, and says more.
    throw waiting.isHeld() || closing.aborted ? error : waiting.lossError();
  } finally {
    closing.removeEventListener('abort', abort);
    stopListening?.();
  }
  try {
    // A fixed lease lasts as long as the caller asked for, from now on: the wait has used up a part of it.
    if (!options.watchdog) await extend(waiting, deps, waiting.leaseMs, 'renew');
    if (!waiting.isHeld()) throw waiting.lossError();
    return foreign;
  } catch (error) {
    deps.orphanReleases.start(foreign.owner, options);
    throw error;
  }
}

/** The wait is over: another hold takes its place on the store lease, in the same step. @throws LeaseLostError */
export function endWait(waiting: Hold, { watchdog, active }: LeaseDeps): void {
  if (!waiting.end()) throw waiting.lossError();
  watchdog.unwatch(waiting);
  active.delete(waiting);
  waiting.storeLease.removeHolder(waiting);
}

/** The other lock was not had: ours is released, or passed on to the next call of this process. */
export async function abandon(waiting: Hold, deps: LeaseDeps): Promise<void> {
  const { alarms, localQueues, watchdog, active, orphanReleases } = deps;
  waiting.end();
  watchdog.unwatch(waiting);
  // No call got the grant.
  waiting.storeLease.minHoldMs = 0;
  const released = localQueues.release(waiting, () => {});
  if (released) {
    const again = (): Promise<boolean> => releaseInStore(waiting.storeLease, deps);
    const answer = await retryUnexecuted(alarms, released, waiting.attemptTimeoutMs, again, waiting.endedAt);
    if (answer.outcome !== 'answered') orphanReleases.start(waiting.owner, waiting);
  }
  active.delete(waiting);
}
