import { type AsyncContext, currentContext } from '../util/async-contexts.js';
import { beginTogether, withGroup, tellDepth } from './changes.js';
import { type Acquired, CompositeLease } from './composite-lease.js';
import { labelWithGroup } from '../api/holder.js';
import type { LeaseLostError } from '../api/lease-errors.js';
import { LockShutdownError, quoteResource } from '../api/errors.js';
import { OVER, SingleLease } from './single-lease.js';
import { type Grant, Hold, type LossListener } from '../holding/hold.js';
import { cutShort } from '../acquiring/acquire-errors.js';
import { completeError, emitFailure, originalError } from '../acquiring/failed-calls.js';
import { noteWait, waitBefore } from '../acquiring/waits.js';
import type { Origin } from '../util/call-site.js';
import type { KernelParts } from './kernel-parts.js';
import { SeveralParts } from '../holding/several-parts.js';
import { checkOwnPermits, checkReentry, reenter } from './reentry.js';
import type { OpenTransaction, TransactionLeases } from './transaction-leases.js';
import type { LockedWork } from '../api/lease.js';
import { refuseUnfinished, unfinishedWork } from '../api/work.js';
import type { OnLost, ResolvedLockOptions } from '../api/lock-options.js';

/** Makes leases: of one resource, of several at once, or by entering again a lock that this async context holds. */
export class LeaseFactory {
  readonly #losses: LossListener = {
    lost: (hold, error) => this.#onLost(hold, error),
    blockedMs: (since) => this.deps.watchdog.blockedMs(since),
  };

  /** Set if the leases of `using` last until the end of a database transaction. */
  transactions: TransactionLeases | undefined;

  labelsGroups = false;

  constructor(private readonly deps: KernelParts) {}

  /** @throws LockError of the kind that gives the reason; then nothing is held */
  acquire(names: readonly string[], options: ResolvedLockOptions, origin?: Origin): Promise<Acquired> {
    if (names.length === 1) return this.acquireOne(names[0]!, options, origin);
    return this.#observed(names, options, this.#acquireAll(names, options, origin), origin);
  }

  acquireOne(resource: string, options: ResolvedLockOptions, origin?: Origin): Promise<SingleLease> {
    return this.#observed(resource, options, this.#traced(resource, options, origin), origin);
  }

  #observed<T>(
    asked: string | readonly string[],
    options: ResolvedLockOptions,
    lease: Promise<T>,
    origin: Origin | undefined,
  ): Promise<T> {
    // The only reaction of this promise: through it, V8 finds the function that awaits the call.
    const seen: Promise<T> = lease.catch((error: unknown) => {
      completeError(error, options, this.deps);
      emitFailure(asked, options, error, origin, this.deps);
      // A caller may ignore the call.
      seen.catch(() => {});
      throw options.retry ? originalError(error) : error;
    });
    return seen;
  }

  #traced(resource: string, asked: ResolvedLockOptions, origin?: Origin, several?: SeveralParts): Promise<SingleLease> {
    const given = this.labelsGroups ? this.#labelled(resource, asked) : asked;
    if (this.deps.observation.followsCall(resource)) return this.#followed(resource, given, origin, several);
    return this.#acquireOne(resource, given, origin, undefined, several);
  }

  /** A separate function, because one that creates no closure costs less. */
  #followed(
    resource: string,
    given: ResolvedLockOptions,
    origin?: Origin,
    several?: SeveralParts,
  ): Promise<SingleLease> {
    const { observation, context } = this.deps;
    // The call that has entered it first is followed, and its hold.
    if (!given.permits && isLock(context.hold(resource))) return this.#acquireOne(resource, given, origin);
    // Outside of the trace: what the holder does later is no part of the acquisition.
    const caller = currentContext();
    return observation.call(resource, given, (options) => this.#acquireOne(resource, options, origin, caller, several));
  }

  #labelled(resource: string, options: ResolvedLockOptions): ResolvedLockOptions {
    const group = this.deps.observers.groups.of(resource, options.group);
    return { ...options, label: labelWithGroup(options.label, group) };
  }

  #acquireOne(
    resource: string,
    options: ResolvedLockOptions,
    origin?: Origin,
    outside?: AsyncContext,
    several?: SeveralParts,
  ): Promise<SingleLease> {
    const { context } = this.deps;
    if (options.permits) checkOwnPermits(resource, options.permits, context);
    const held = options.permits ? undefined : context.hold(resource);
    // A call that takes a semaphore for a lock asks the store, which refuses it.
    if (isLock(held)) return reenter(held, options, this.deps);
    this.transactions?.current()?.checkIsFree(resource, options);
    if (this.deps.closing.aborted && this.deps.shutdownSignal().aborted)
      return Promise.reject(new LockShutdownError(resource));
    // The grant may come in any context, such as the releasing call's, or a connection's.
    const caller = outside ?? currentContext();
    const take = (grant: Grant): SingleLease => {
      const lease = this.hold(grant, options, caller);
      return origin ? this.#tracked(lease, origin) : lease;
    };
    return this.deps.localQueues.acquire<SingleLease>(resource, options, take, several);
  }

  /** Remembers the origin of a lease while the user may forget to release it. */
  #tracked(lease: SingleLease, origin: Origin): SingleLease {
    const { leaks, observers } = this.deps;
    if (observers.onOrigin !== undefined) observers.onOrigin(origin);
    return leaks.track(lease, origin);
  }

  /**
   * Takes charge of a lock that the store has granted.
   *
   * @param caller the async context of the call that has acquired it
   */
  hold(grant: Grant, options: ResolvedLockOptions, caller?: AsyncContext): SingleLease {
    const { storeLease, waitedMs, attempts, grantedAt } = grant;
    const { observation, observers } = this.deps;
    const hold = new Hold(storeLease, options, this.#losses, caller, grantedAt);
    // A fixed lease ends by itself, so a shutdown waits for it only if work runs under it (see bind).
    if (hold.renewable) this.deps.active.add(hold);
    this.deps.watchdog.watch(hold);
    // Handed on before the store received the last leave.
    if (storeLease.toldDepth !== 1) tellDepth(hold, this.deps);
    observation.granted(hold, grant);
    if (observers.wants('acquired')) {
      const { resource } = storeLease.owner;
      // Written out: to spread one object into another costs half a microsecond.
      observers.emit({
        type: 'acquired',
        service: observers.service,
        resource,
        mode: options.mode,
        group: observers.groups.of(resource, options.group),
        fencingToken: hold.fencingToken,
        waitedMs,
        hasWaited: grant.hasWaited ?? false,
        handedOn: storeLease.isHandedOn,
        attempts,
      });
    }
    return new SingleLease(hold, this.deps);
  }

  /**
   * Runs the work in the async context of the lease, and releases that. Under a lease that is lost, it is not called.
   *
   * @throws LeaseLostError if the lease is lost before the work settles, unless the work fails with an error of its own
   */
  async runUnder<T>(
    acquired: Acquired | Promise<Acquired>,
    work: LockedWork<T>,
    onLost?: OnLost,
    transaction?: OpenTransaction,
  ): Promise<T> {
    const { context, observation } = this.deps;
    // Awaited here and not by the caller, which then needs no promise of its own.
    const lease = acquired instanceof Promise ? await acquired : acquired;
    const underLease = (): T | Promise<T> => {
      // The process may have been suspended since the grant.
      lease.assertHeld();
      return work(lease.bind());
    };
    try {
      const running = observation.hasTracer
        ? observation.runUnder(lease.holds, () => context.run(lease, underLease))
        : context.run(lease, underLease);
      const result = await running;
      const unfinished = unfinishedWork(result);
      if (unfinished) {
        const under = `the lock of ${quoteResource(lease.resources)}`;
        throw refuseUnfinished(result, unfinished, under, lease.holds[0]!.options.group);
      }
      if (onLost !== 'ignore') lease.checkNotLost(result);
      return result;
    } catch (error) {
      throw lease.errorOfWork(error);
    } finally {
      const ended = transaction ? transaction.keep(lease) : lease.end();
      if (ended !== OVER) {
        try {
          await ended;
        } catch {
          // A failed release never replaces the result or error of the work. Observers get it.
        }
      }
    }
  }

  /** In the order of the names, which is the same everywhere: no two callers can wait for each other. */
  async #acquireAll(
    names: readonly string[],
    options: ResolvedLockOptions,
    origin: Origin | undefined,
  ): Promise<CompositeLease> {
    for (const name of names) {
      const held = this.deps.context.hold(name);
      if (isLock(held)) checkReentry(held, options);
    }
    const startedAt = this.deps.clock.now();
    const giveUpAt = startedAt + options.waitMs;
    const leases: SingleLease[] = [];
    const isLimited = !options.watchdog || options.maxHoldMs !== Infinity;
    /** Renewed until the last resource is granted, whatever the options of the lease. */
    const waiting: Hold[] = [];
    const { observation, context } = this.deps;
    const several = this.#severalParts(names, options, leases);
    try {
      for (const name of names) {
        const leftMs = Math.max(1, giveUpAt - this.deps.clock.now());
        // Its token is the largest of them. So the next holder of a part needs a token from Redis, which is larger
        // still.
        // It has no minimum until its caller gets all of them.
        const asked = { ...options, waitMs: options.waitMs === 0 ? 0 : leftMs, strictOrder: true, minHoldMs: 0 };
        const isWaiting = isLimited && name !== names.at(-1) && !isLock(context.hold(name));
        const part = isWaiting ? { ...asked, watchdog: true, maxHoldMs: Infinity } : asked;
        const before = leases.at(-1);
        const lease =
          before === undefined || !observation.hasTracer
            ? this.#traced(name, part, undefined, several)
            : observation.runUnder(before.holds, () => this.#traced(name, part, undefined, several));
        leases.push(await (leases.length === 0 ? lease : lease.catch((error) => cutShort(error, part, options))));
        if (isWaiting) waiting.push(leases.at(-1)!.hold);
      }
      if (isLimited) await beginTogether(waiting, options, leases.at(-1)!.hold.deadline, this.deps);
      for (const lease of leases) lease.assertHeld();
      for (const { hold } of leases) hold.storeLease.raiseMinHold(options.minHoldMs);
      const lease = new CompositeLease(leases);
      return origin ? this.deps.leaks.track(lease, origin) : lease;
    } catch (error) {
      // The waits for the earlier ones were reported with their grants.
      if (!waitBefore(error)) noteWait(error, startedAt, false);
      several.giveUp();
      await Promise.allSettled(leases.toReversed().map((lease) => lease.end()));
      throw error;
    }
  }

  /** Returns the resources that the call has and wants. It acquires the free ones in one round trip. */
  #severalParts(names: readonly string[], options: ResolvedLockOptions, leases: readonly SingleLease[]): SeveralParts {
    const { context, localQueues } = this.deps;
    const entered = new Set(names.filter((name) => context.hold(name)));
    const wanted = {
      names,
      leases,
      options: { ...options, strictOrder: true, minHoldMs: 0 },
      isOpen: (name: string) => !entered.has(name) && localQueues.isIdle(name),
      labelOf: (name: string) => (this.labelsGroups ? this.#labelled(name, options).label : options.label),
    };
    return new SeveralParts(wanted, this.deps);
  }

  #onLost(hold: Hold, error: LeaseLostError): void {
    const { reason } = error;
    const { active, watchdog, observers, localQueues, clock, observation } = this.deps;
    watchdog.unwatch(hold);
    // At a shutdown the work may still release it in the time of grace. Otherwise a release may never come.
    if (reason !== 'shutdown') active.delete(hold);
    localQueues.lost(hold);
    withGroup(error, hold, this.deps);
    observation.ended(hold, 'lost', error);
    if (watchdog.hasLeft(hold) || !observers.wants('lost')) return;
    const heldMs = clock.now() - hold.acquiredAt;
    observers.emit({ type: 'lost', ...observers.describe(hold), heldMs, reason, error });
  }
}

/** Permits are not entered again: each call takes its own. */
function isLock(hold: Hold | undefined): hold is Hold {
  return hold !== undefined && hold.mode !== 'semaphore';
}
