import { createHash } from 'node:crypto';
import { InvalidLockOptionsError, quoteResource } from '../../core/api/errors.js';
import {
  type ForeignClient,
  type ForeignContext,
  type ForeignLock,
  type ForeignRun,
  isForeignMode,
} from '../../core/api/foreign-lock.js';
import type { Runtime } from '../../core/holding/runtime.js';
import type { LeaseDeps, SecondLock, SecondLockCall, SecondLocks } from '../../core/lease/lease-deps.js';
import type { LeaseTransfer } from '../../core/lease/transfer-text.js';
import { inRootContext } from '../../core/util/async-contexts.js';
import { quote } from '../../core/util/quoted.js';
import { ForeignHold } from './foreign-hold.js';
import { noteWait } from '../../core/acquiring/waits.js';
import { LockReentryError } from '../../core/api/lease-errors.js';
import { Hold } from '../../core/holding/hold.js';
import type { LockContext } from '../../core/holding/lock-context.js';
import { extend } from '../../core/lease/changes.js';
import { retryUnexecuted } from '../../core/store/ask.js';
import { onAbort } from '../../core/util/signals.js';
import { acquireForeign } from './foreign-wait.js';

/** The locks of other libraries that one lock client takes beside its own, and what it has opened for them. */
export class AlsoLocks implements SecondLocks {
  readonly #clients = new Map<ForeignLock, ForeignClient>();
  #claims = 0;

  constructor(
    private readonly deps: Runtime,
    private readonly open = (lock: ForeignLock, context: ForeignContext): ForeignClient => lock.open(context),
  ) {}

  of(lock: ForeignLock, resource: string): AlsoLock | undefined {
    const key = lock.keyOf(resource);
    if (key === undefined) return undefined;
    return new AlsoLock(resource, lock, key, (runToken) => this.#claim(resource, lock, key, runToken));
  }

  checkNames(names: readonly string[], lock: ForeignLock): void {
    const keys = new Map<string, string>();
    for (const name of names) {
      const key = lock.keyOf(name);
      if (key === undefined) continue;
      const other = keys.get(key);
      if (other !== undefined) {
        throw new InvalidLockOptionsError(
          `One call cannot lock ${quoteResource(other)} and ${quoteResource(name)}: for both, alsoLock takes the lock ` +
            `${quote(key)} of ${lock.library}, which has one holder. Until all old processes are gone, lock ` +
            'one resource that stands for both.',
          'alsoLock',
        );
      }
      keys.set(key, name);
    }
  }

  checkMayAdopt({ resource, mode }: LeaseTransfer, lock: ForeignLock): void {
    if (!isForeignMode(mode) || lock.keyOf(resource) === undefined) return;
    throw new InvalidLockOptionsError(
      `${quoteResource(resource)} cannot be adopted while the module takes the lock of ${lock.library} too (alsoLock): ` +
        'that lock is not transferred. Let the job acquire the lock itself, or let the key function of alsoLock return ' +
        'undefined for this resource.',
      'alsoLock',
    );
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#clients.values()].map(async (client) => client.close()));
  }

  /** A new claim, with an owner value of its own. Sends nothing. */
  #claim(resource: string, lock: ForeignLock, key: string, runToken: number | undefined): ForeignHold {
    const { clock, random, store, orphanReleases } = this.deps;
    let client = this.#clients.get(lock);
    if (client === undefined) {
      const context = { instanceId: store.instanceId, now: () => clock.now(), randomId: () => random.id() };
      // Its connections must not keep the data of the caller.
      client = inRootContext(() => this.open(lock, context));
      this.#clients.set(lock, client);
    }
    const run = runToken === undefined ? undefined : { name: this.#nameOf(resource), token: runToken };
    const owner = { resource, id: `alsoLock/${++this.#claims}`, mode: 'exclusive' } as const;
    const foreign = new ForeignHold(owner, lock, key, client.claim(key, run), clock);
    orphanReleases.retain(owner, { releasedBy: foreign });
    return foreign;
  }

  /** A digest: any program that may read the keys of the old code sees it. */
  #nameOf(resource: string): ForeignRun['name'] {
    const names = JSON.stringify([this.deps.store.location ?? '', resource]);
    return `nestjs-redis-lock:${createHash('sha256').update(names).digest('hex').slice(0, 16)}:`;
  }
}

type Call = SecondLockCall<unknown>;

class AlsoLock implements SecondLock {
  /** @param claim makes a claim for one call, which may be the run of a singleton job with this fencing token */
  constructor(
    private readonly resource: string,
    private readonly lock: ForeignLock,
    private readonly key: string,
    private readonly claim: (runToken: number | undefined) => ForeignHold,
  ) {}

  checkIsHeldBy(hold: Hold): void {
    if (this.#isHeldBy(hold)) return;
    throw new InvalidLockOptionsError(
      `${quoteResource(hold.owner.resource)} is held already, by this async context or by its database transaction, without ` +
        `the lock of ${this.lock.library} that this call wants too. Pass the same alsoLock to the call that acquires it first.`,
      'alsoLock',
    );
  }

  checkIsNotOwn(context: LockContext, transaction?: Pick<LockContext, 'find'>): void {
    const isSame = (hold: Hold): boolean => this.#isHeldBy(hold);
    const own = context.find(isSame) ?? transaction?.find(isSame);
    if (!own) return;
    const { resource, lock, key } = this;
    throw LockReentryError.waitingForOwnForeign(resource, own.owner.resource, `${quote(key)} of ${lock.library}`);
  }

  #isHeldBy({ second }: Hold): boolean {
    return second instanceof ForeignHold && second.lock === this.lock && second.key === this.key;
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
    const { resource } = this;
    const { grant, options, run } = call;
    const closing = deps.closingHere();
    // First, because opening it may throw.
    const foreign = this.claim(run?.fencingToken);
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
      throw waiting.checkHeld() || closing.aborted ? error : waiting.lossError();
    } finally {
      closing.removeEventListener('abort', abort);
      stopListening?.();
    }
    try {
      // A fixed lease lasts as long as the caller asked for, from now on: the wait has used up a part of it.
      if (!options.watchdog) await extend(waiting, deps, waiting.leaseMs, 'renew');
      if (!waiting.checkHeld()) throw waiting.lossError();
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
    const again = (): Promise<boolean> => deps.orphanReleases.release(waiting.storeLease);
    const answer = await retryUnexecuted(alarms, released, waiting.attemptTimeoutMs, again, waiting.endedAt);
    if (answer.outcome !== 'answered') orphanReleases.start(waiting.owner, waiting);
  }
  active.delete(waiting);
}
