import { noteWait } from '../../core/acquiring/waits.js';
import { InvalidLockOptionsError, quoteResource } from '../../core/api/errors.js';
import type { ForeignLock } from '../../core/api/foreign-lock.js';
import { LockReentryError } from '../../core/api/lease-errors.js';
import { Hold } from '../../core/holding/hold.js';
import type { LockContext } from '../../core/holding/lock-context.js';
import { releaseInStore } from '../../core/holding/release-in-store.js';
import { extend } from '../../core/lease/changes.js';
import type { LeaseDeps, SecondLock, SecondLockCall } from '../../core/lease/lease-deps.js';
import { retryUnexecuted } from '../../core/store/ask.js';
import { quote } from '../../core/util/quoted.js';
import { onAbort } from '../../core/util/signals.js';
import { ForeignHold } from './foreign-hold.js';
import { acquireForeign } from './foreign-wait.js';

/** What a call takes beside its own lock. */
interface Asked {
  readonly resource: string;
  readonly lock: ForeignLock;
  /** What the lock of the resource is called there. */
  readonly key: string;
  /** Makes a claim of its own for each call. @param runToken the fencing token of the run of a singleton job */
  claim(runToken: number | undefined): ForeignHold;
}

type Call = SecondLockCall<unknown>;

/** The lock of another library that a call takes beside its own, and its key there. */
export class AlsoLock implements SecondLock {
  constructor(private readonly asked: Asked) {}

  checkIsHeldBy(hold: Hold): void {
    if (this.#isHeldBy(hold)) return;
    throw new InvalidLockOptionsError(
      `${quoteResource(hold.owner.resource)} is held already, by this async context or by its database transaction, without ` +
        `the lock of ${this.asked.lock.library} that this call wants too. Pass the same alsoLock to the call that acquires it first.`,
      'alsoLock',
    );
  }

  checkIsNotOwn(context: LockContext, transaction?: Pick<LockContext, 'find'>): void {
    const isSame = (hold: Hold): boolean => this.#isHeldBy(hold);
    const own = context.find(isSame) ?? transaction?.find(isSame);
    if (!own) return;
    const { resource, lock, key } = this.asked;
    throw LockReentryError.waitingForOwnForeign(resource, own.owner.resource, `${quote(key)} of ${lock.library}`);
  }

  #isHeldBy({ second }: Hold): boolean {
    return second instanceof ForeignHold && second.lock === this.asked.lock && second.key === this.asked.key;
  }

  async acquire<L>(call: SecondLockCall<L>, deps: LeaseDeps): Promise<L> {
    const { clock, orphanReleases } = deps;
    const { grant, options, startedAt = clock.now() - grant.waitedMs } = call;
    const waiting = beginWait(call, deps);
    let foreign: ForeignHold | undefined;
    try {
      foreign = await this.#waitForIt(waiting, call, startedAt, deps);
      endWait(waiting, deps);
    } catch (error) {
      noteWait(error, startedAt, grant.hasWaited ?? false);
      if (foreign) orphanReleases.start(foreign.owner, options);
      await call.failed?.(error, waiting);
      await abandon(waiting, deps);
      throw error;
    }
    const grantedAt = clock.now();
    return call.take({ ...grant, waitedMs: grantedAt - startedAt, grantedAt }, foreign);
  }

  /** @throws LockError of the kind that says why it was not had; then nothing of it is held */
  async #waitForIt(waiting: Hold, call: Call, startedAt: number, deps: LeaseDeps): Promise<ForeignHold> {
    const { resource } = this.asked;
    const { grant, options, run } = call;
    const closing = deps.closingHere();
    // First, because opening it may throw.
    const foreign = this.asked.claim(run?.fencingToken);
    const over = new AbortController();
    const abort = (): void => over.abort();
    waiting.onOver(abort);
    closing.addEventListener('abort', abort, { once: true });
    const stopListening = options.signal && onAbort(options.signal, abort);
    if (closing.aborted || options.signal?.aborted) abort();
    // An old process that has it runs the tick, so it is not waited for. A tick that was granted before is none of the
    // old processes: while its runner had their lock, they skipped it.
    const isBusyFinal = run ? !run.rerun : options.waitMs === 0;
    const isPatient = run?.rerun ?? false;
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
}

/**
 * The hold of a call that has our lock and waits for the other one. The watchdog renews it, and a shutdown waits for
 * its end. Observers do not hear of it: no caller has a lease yet.
 */
function beginWait({ grant, options, caller }: Call, deps: LeaseDeps): Hold {
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

/** The wait is over: another hold takes its place on the store lease, in the same step. @throws LeaseLostError */
function endWait(waiting: Hold, { watchdog, active }: LeaseDeps): void {
  if (!waiting.end()) throw waiting.lossError();
  watchdog.unwatch(waiting);
  active.delete(waiting);
  waiting.storeLease.removeHolder(waiting);
}

/** The other lock was not had: ours is released, or passed on to the next call of this process. */
async function abandon(waiting: Hold, deps: LeaseDeps): Promise<void> {
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
