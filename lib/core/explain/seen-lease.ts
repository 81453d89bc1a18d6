import { type Holder, renewedMsAgo } from '../api/holder.js';
import { fencingTickOf } from '../store/fencing-token.js';
import type { LockWaiter } from '../store/lock-state.js';
import { keepPeriodMs } from '../places/place.js';
import type { OwnHold, OwnPart } from './own-part.js';

/** The watchdog renews a lease after a third of it. One that is not renewed after half of it is overdue. */
const OVERDUE_PART = 2;
/** Clocks and answers are not exact. */
const SLACK_MS = 100;
/** A living waiter keeps its place in each period, and up to a quarter of it later. */
const LATE_KEEP = 1.5;
/** A machine may be slow, and a first try may fail. */
const KEEP_SLACK_MS = 1_000;

/** What can be said of the lease of one holder. */
export interface SeenLease {
  readonly holder: Holder;
  /** Of this process. */
  readonly own: OwnHold | undefined;
  /** How long ago it was renewed, or granted. */
  readonly renewedMsAgo: number;
  /** Whether it was never renewed. */
  readonly isFirst: boolean;
  /** `renewing`: in time, or not due yet. `overdue`: not renewed in time. `fixed`: never renewed. */
  readonly status: 'renewing' | 'overdue' | 'fixed';
}

export function seenLease(holder: Holder, own: OwnPart): SeenLease {
  const mine = holder.isThisProcess ? ownHoldOf(holder, own) : undefined;
  const agoMs = renewedMsAgo(holder);
  const isOverdue = agoMs > holder.leaseMs / OVERDUE_PART;
  return {
    holder,
    own: mine,
    renewedMsAgo: agoMs,
    isFirst: agoMs >= holder.heldMs - SLACK_MS,
    status: mine && !mine.isRenewed ? 'fixed' : isOverdue ? 'overdue' : 'renewing',
  };
}

/** How long after the last one a holder should renew its lease. */
export function renewalDueMs({ leaseMs }: Pick<Holder, 'leaseMs'>): number {
  return leaseMs / 3;
}

/** How long a renewal has been due. Negative or 0 before that, and for a moment after it. */
export function renewalLateMs({ holder, renewedMsAgo: agoMs }: SeenLease): number {
  return agoMs - renewalDueMs(holder) - SLACK_MS;
}

/** In what time the lease is overdue if its process has died since it last renewed it. */
export function overdueInMs({ holder, renewedMsAgo: agoMs }: SeenLease): number {
  return Math.max(0, holder.leaseMs / OVERDUE_PART - agoMs);
}

/** Leases that this process passes on in memory count up from the token that Redis has. */
function ownHoldOf({ fencingToken }: Holder, { holds }: OwnPart): OwnHold | undefined {
  const tick = fencingTickOf(fencingToken);
  const meant = holds.filter((hold) => fencingTickOf(hold.fencingToken) === tick);
  return meant.find((hold) => hold.fencingToken === fencingToken) ?? meant[0];
}

/** After this time without a keep, the waiter has most likely died. */
export function overdueKeepMs(leaseMs: number): number {
  return LATE_KEEP * keepPeriodMs(leaseMs) + KEEP_SLACK_MS;
}

/** The waiters of other processes that do not keep their places in time. */
export interface SilentWaiters {
  readonly count: number;
  /** How long ago each of them kept its place, at least. */
  readonly keptMsAgo: number;
  /** How often a living waiter with such a lease keeps its place. */
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
