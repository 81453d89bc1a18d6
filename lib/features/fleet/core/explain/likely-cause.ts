import { LONG_WAIT_MS } from '../../../../kernel/acquiring/waits.js';
import type { LockMode } from '../../../../kernel/api/lock-mode.js';
import { LEADER_PREFIX } from '../../../../kernel/api/resource.js';
import type { LockState, LockWaiter } from '../../../../kernel/store/lock-state.js';
import type { LockCause, OwnPart } from './explanation.js';
import { type Holder, renewedMsAgo } from '../../../../kernel/api/holder.js';
import { fencingTickOf } from '../../../../kernel/store/fencing-token.js';
import { keepPeriodMs } from '../../../../kernel/places/place.js';
import { lifeOf } from '../roll/life.js';
import type { FleetReport, InstanceLife } from '../roll/lock-fleet.js';

/** The watchdog renews a lease after a third of it. One that is not renewed after half of it is overdue. */
const OVERDUE_PART = 2;
/** Clocks and answers are not exact. */
const SLACK_MS = 100;
/** A live waiter keeps its place in each period, and up to a quarter of it later. */
const LATE_KEEP = 1.5;
/** A machine may be slow, and a first try may fail. */
const KEEP_SLACK_MS = 1_000;

/** A holder, and what is known beside its lease. */
export interface ExplainedHolder extends Holder {
  /** Set if this process holds it. */
  readonly own: OwnPart['holds'][number] | undefined;
  /** What is known of its process, if the instances were asked. */
  readonly life: InstanceLife | undefined;
  /** The time since it was renewed, or granted. */
  readonly renewedMsAgo: number;
  /** `true` if it was never renewed. */
  readonly isFirst: boolean;
  /** `renewing`: in time, or not due yet. `overdue`: not renewed in time. `fixed`: never renewed. */
  readonly status: 'renewing' | 'overdue' | 'fixed';
}

export function explainHolder(holder: Holder, part: OwnPart, fleet?: FleetReport): ExplainedHolder {
  const own = holder.isThisProcess ? ownHoldOf(holder, part) : undefined;
  const agoMs = renewedMsAgo(holder);
  const isOverdue = agoMs > holder.leaseMs / OVERDUE_PART;
  return {
    ...holder,
    own,
    life: fleet && lifeOf(holder, fleet),
    renewedMsAgo: agoMs,
    isFirst: agoMs >= holder.heldMs - SLACK_MS,
    status: own && !own.isRenewed ? 'fixed' : isOverdue ? 'overdue' : 'renewing',
  };
}

/** Returns true if its process has just answered: the lease alone only proves that its holder was alive. */
export function isKnownAlive({ isThisProcess, life }: ExplainedHolder): boolean {
  return isThisProcess || life === 'alive';
}

/** Returns the lateness of a renewal. Negative or 0 before it is due, and for a moment after it. */
export function renewalLateMs({ leaseMs, renewedMsAgo: agoMs }: ExplainedHolder): number {
  return agoMs - leaseMs / 3 - SLACK_MS;
}

/** In what time the lease is overdue if its process has died since it last renewed it. */
export function overdueInMs({ leaseMs, renewedMsAgo: agoMs }: ExplainedHolder): number {
  return Math.max(0, leaseMs / OVERDUE_PART - agoMs);
}

/** Leases that this process passes on in memory count up from the token that Redis has. */
function ownHoldOf({ fencingToken }: Holder, { holds }: OwnPart): ExplainedHolder['own'] {
  const tick = fencingTickOf(fencingToken);
  const meant = holds.filter((hold) => fencingTickOf(hold.fencingToken) === tick);
  return meant.find((hold) => hold.fencingToken === fencingToken) ?? meant[0];
}

/** After this time without a keep, the waiter has most likely died. */
export function overdueKeepMs(leaseMs: number): number {
  return LATE_KEEP * keepPeriodMs(leaseMs) + KEEP_SLACK_MS;
}

/** Returns false if another process holds it: calls of its own may wait there, in no queue of Redis. */
export function isHeldHereOnly({ holders }: LockState): boolean {
  return holders.every(({ isThisProcess }) => isThisProcess);
}

/** The waiters of other processes that do not keep their places in time. */
export interface SilentWaiters {
  readonly count: number;
  /** The minimum time since each of them kept its place. */
  readonly keptMsAgo: number;
  /** The interval at which a live waiter with such a lease keeps its place. */
  readonly periodMs: number;
}

/** @returns undefined if there is none */
export function silentWaiters(waiters: readonly LockWaiter[], { instanceId }: OwnPart): SilentWaiters | undefined {
  const silent = waiters.flatMap((waiter) => {
    const { leaseMs, placeMs } = waiter;
    if (waiter.instanceId === instanceId || leaseMs === undefined || placeMs === undefined) return [];
    const keptMsAgo = leaseMs - placeMs;
    return keptMsAgo > overdueKeepMs(leaseMs) ? [{ keptMsAgo, periodMs: keepPeriodMs(leaseMs) }] : [];
  });
  if (silent.length === 0) return undefined;
  return {
    count: silent.length,
    keptMsAgo: Math.min(...silent.map(({ keptMsAgo }) => keptMsAgo)),
    periodMs: Math.max(...silent.map(({ periodMs }) => periodMs)),
  };
}

/** The request of a call that waits, or would be made. */
export interface WantedAccess {
  readonly mode?: LockMode | undefined;
  readonly permits?: number | undefined;
}

/** Returns the most likely reason why a call cannot get the resource, by the first rule that fits. */
export function likelyCause(
  state: LockState,
  holders: readonly ExplainedHolder[],
  own: OwnPart,
  wanted: WantedAccess,
  silent: SilentWaiters | undefined,
): LockCause {
  const { mode, waiters } = state;
  const isSilentQueue = silent?.count === waiters.length;
  if (mode === null) return causeOfFree(state, own, isSilentQueue);
  if (holders.some(({ own: hold }) => hold?.isOfThisCall)) return 'heldByThisCall';
  if (holders.some(({ own: hold }) => hold?.isKeptByTransaction)) return 'transaction';
  if (isMismatch(state, wanted)) return 'mismatch';
  // A dead holder blocks all calls, whatever the other holders do that share the resource with it.
  if (holders.some(({ isKept }) => isKept)) return 'kept';
  const isDead = holders.some(({ status }) => status === 'overdue');
  if (isDead && isSilentQueue) return 'deadWaiters';
  if (isDead)
    return holders.every((each) => each.status !== 'overdue' || isFixed(each, own)) ? 'fixedLease' : 'holderDead';
  if (holders.some((each) => isFixed(each, own))) return 'fixedLease';
  if (state.resource.startsWith(LEADER_PREFIX)) return 'leadership';
  if (waiters.length === 0 && own.waiting === 0) return 'inUse';
  if (own.waiting > 0 && holders.some(({ isThisProcess }) => isThisProcess)) return 'heldByThisProcess';
  return holders.some(isSlow) ? 'holderSlow' : 'inUse';
}

/** A holder is slow if a call can have waited for it for a long time. */
export function isSlow({ heldMs }: ExplainedHolder): boolean {
  return heldMs >= LONG_WAIT_MS;
}

/**
 * A release grants the resource to the next one that waits. So a free resource with a queue is what a dead holder has
 * left, or a key that was deleted. A live waiter takes it just after the lease of the holder, or when it keeps its
 * place.
 */
function causeOfFree({ waiters }: LockState, { instanceId }: OwnPart, isSilentQueue: boolean): LockCause {
  if (waiters.length === 0) return 'free';
  if (waiters.some((waiter) => waiter.instanceId === instanceId)) return 'inUse';
  return isSilentQueue ? 'deadWaiters' : 'inUse';
}

/**
 * Returns true if a call like this one, or one that waits, can never be granted while the resource is used as it is
 * now.
 */
function isMismatch({ mode, permits, waiters }: LockState, wanted: WantedAccess): boolean {
  const isSemaphore = mode === 'semaphore';
  if (wanted.permits !== undefined && (!isSemaphore || wanted.permits > permits!.total)) return true;
  if (wanted.mode !== undefined && isSemaphore) return true;
  return isSemaphore && waiters.some((waiter) => (waiter.permits ?? 0) > permits!.total);
}

function isFixed({ status, isThisProcess, isFirst }: ExplainedHolder, { wanted }: OwnPart): boolean {
  if (status === 'fixed') return true;
  // Another process has never renewed it, and the same calls of this process ask for a fixed lease.
  return isFirst && !isThisProcess && wanted?.watchdog === false;
}
