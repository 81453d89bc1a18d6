import { type Holders, readLabel } from '../api/holder.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { Hold } from '../holding/hold.js';
import type { StoreLease } from '../holding/store-lease.js';
import { labelOf } from '../holding/labels.js';
import type { AttemptLog } from '../store/ask.js';
import type { LockStore } from '../store/lock-store.js';
import type { Runtime } from '../holding/runtime.js';
import type { PendingCall } from './pending-call.js';
import { reportsWaits } from './waits.js';
import type { LockObservers } from '../events/observers.js';

/** A holder that had the lock for this long is reported to every call that has waited for it. */
const SLOW_MS = 20;

export interface QueueFacts {
  readonly resource: string;
  readonly store: LockStore;
  readonly log: AttemptLog;
  /** The lease of this process that all its calls wait for. Without one, they wait for an answer of the store. */
  readonly ownLease: StoreLease | undefined;
}

/**
 * Records the reasons that are known without asking. If this process holds the resource, the state of Redis does not
 * matter.
 */
export function noteReasons(
  { resource, store, log, ownLease }: QueueFacts,
  { attemptTimeoutMs }: ResolvedLockOptions,
  now: number,
  hasEnded = true,
): void {
  if (ownLease) {
    const ttlMs = Math.max(0, ownLease.deadline - now);
    return log.busy({ ttlMs, seen: ownHolder(ownLease, store.instanceId, now) }, now);
  }
  log.checkSilence(now, attemptTimeoutMs, hasEnded, store.hearing?.silentSince);
  log.notice(store.trouble(resource));
}

/** Returns the holders that a call waits for, as far as they are known without asking. */
export function holdersNow({ store, log, ownLease }: QueueFacts, now: number): Holders {
  return ownLease ? ownHolder(ownLease, store.instanceId, now) : log.holders(now);
}

/** The holder that calls of this process wait behind, as an answer of the store would name it. */
function ownHolder(
  { mode, fencingToken, leaseMs, toldDepth: depth = 1, deadline, beganAt, holders }: StoreLease,
  instanceId: string,
  now: number,
): Holders {
  const ttlMs = Math.max(0, Math.round(deadline - now));
  const heldMs = Math.max(0, Math.round(now - beganAt));
  const lease = { instanceId, isThisProcess: true, mode, fencingToken, ttlMs, leaseMs, heldMs, depth };
  return { holders: [{ ...lease, ...readLabel(labelOf(holders)) }], holderCount: 1 };
}

/** The reasons for which several calls wait together. */
export interface ReportedWait {
  readonly resource: string;
  readonly log: AttemptLog;
  /** Returns the holders that they wait for, as far as they are known without asking. */
  holders(now: number): Holders;
}

/**
 * Notifies observers once that a call waits, and once that it has waited for long. If a call waits because Redis is
 * unreachable, other events report that.
 */
export function reportWait(
  observers: LockObservers,
  wait: ReportedWait,
  call: PendingCall,
  now: number,
  place?: number,
): void {
  const { resource, log } = wait;
  if (!reportsWaits(resource)) return;
  for (let type = call.reportDue(now); type !== undefined; type = call.reportDue(now)) {
    if (!observers.wants(type) || (type === 'waitingLong' && log.last !== 'busy')) continue;
    const described = observers.describeCall(resource, call.options);
    const seen = { ...described, ...wait.holders(now), ...(place !== undefined && { place }) };
    observers.emit(type === 'waiting' ? { type, ...seen } : { type, ...seen, waitedMs: call.waitedMs(now) });
  }
}

/** Passes the holders to the tracers of the calls, as far as they are known without asking. */
export function followWaits(wait: ReportedWait, calls: Iterable<PendingCall>): void {
  for (const { options } of calls) options.followed?.waits((now) => wait.holders(now));
}

/**
 * Called when a hold ends that the calls have waited for. Leases are passed on in memory without visiting the calls
 * behind the next one, so these calls would miss a slow holder.
 */
export function reportSlowHolder({ store, clock }: Runtime, hold: Hold, calls: Iterable<PendingCall>): void {
  const now = clock.now();
  const heldMs = now - hold.acquiredAt;
  if (heldMs < SLOW_MS) return;
  const { storeLease, fencingToken } = hold;
  const [holder] = ownHolder(storeLease, store.instanceId, now).holders;
  for (const { options } of calls)
    options.followed?.waits(() => ({ holders: [{ ...holder!, fencingToken, heldMs }], holderCount: 1 }), now);
}
