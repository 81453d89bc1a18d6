import { fencingTickOf } from '../store/fencing-token.js';
import type { Holder } from '../api/holder.js';
import type { LockState } from '../store/lock-state.js';
import { keepPeriodMs } from '../places/place.js';
import type { BetweenLooks, EarlierLook } from './earlier-look.js';
import type { OwnHold, OwnPart } from './own-part.js';

/** The watchdog renews a lease after a third of it. One that is not renewed after half of it is overdue. */
const OVERDUE_PART = 2;
/** Clocks and answers are not exact. */
const SLACK_MS = 100;
/** A living waiter keeps its place in each period, and up to a quarter of it later. */
const LATE_KEEP = 1.5;
/** A machine may be slow, and a first try may fail. */
const KEEP_SLACK_MS = 1_000;

/** How long a lease is in all. If that is a guess, the sentences say so. */
export interface LeaseLength {
  readonly leaseMs: number;
  readonly isGuess: boolean;
}

/** What can be said of the lease of one holder. */
export interface SeenLease {
  readonly holder: Holder;
  /** Of this process. */
  readonly own: OwnHold | undefined;
  readonly isThisProcess: boolean;
  readonly length: LeaseLength | undefined;
  readonly renewedMsAgo: number | undefined;
  /**
   * `new`: its first renewal is not due yet. `renewing`: renewed in time. `overdue`: not renewed in time. `fixed`: never
   * renewed. `unknown`: that cannot be told without its length.
   */
  readonly status: 'new' | 'renewing' | 'overdue' | 'fixed' | 'unknown';
  /** Only of another process, where an earlier look is known. */
  readonly between: BetweenLooks | undefined;
}

export function seenLease(
  holder: Holder,
  state: LockState,
  own: OwnPart,
  statedMs?: number,
  earlier?: EarlierLook,
): SeenLease {
  const isThisProcess = holder.instanceId === own.instanceId;
  const mine = isThisProcess ? ownHoldOf(holder, own) : undefined;
  if (mine) {
    const { leaseMs, renewedMsAgo, isRenewed } = mine;
    const length = { leaseMs, isGuess: false };
    const status = !isRenewed ? 'fixed' : statusOf(leaseMs, renewedMsAgo, mine.heldMs);
    return { holder, own: mine, isThisProcess, length, renewedMsAgo, status, between: undefined };
  }
  const between = isThisProcess ? undefined : earlier?.between(holder);
  const length = lengthOf(holder, state, own, statedMs, between);
  const renewedMsAgo = length && Math.max(0, length.leaseMs - holder.ttlMs);
  const status =
    length && renewedMsAgo !== undefined
      ? statusOf(length.leaseMs, renewedMsAgo, holder.heldMs)
      : statusBetween(holder, between);
  return { holder, own: undefined, isThisProcess, length, renewedMsAgo, status, between };
}

/** Leases that this process passes on in memory count up from the token that Redis has. */
function ownHoldOf({ fencingToken }: Holder, { holds }: OwnPart): OwnHold | undefined {
  const tick = fencingTickOf(fencingToken);
  const meant = holds.filter((hold) => fencingTickOf(hold.fencingToken) === tick);
  return meant.find((hold) => hold.fencingToken === fencingToken) ?? meant[0];
}

function statusOf(leaseMs: number, renewedMsAgo: number, heldMs: number | undefined): SeenLease['status'] {
  if (renewedMsAgo > leaseMs / OVERDUE_PART) return 'overdue';
  return heldMs !== undefined && renewedMsAgo >= heldMs - SLACK_MS ? 'new' : 'renewing';
}

/** What two looks show of a lease whatever its length. Without a renewal for longer than what is left, it is overdue. */
function statusBetween({ ttlMs }: Holder, between: BetweenLooks | undefined): SeenLease['status'] {
  if (between?.what === 'renewed') return 'renewing';
  return between?.what === 'notRenewed' && between.leastMs > ttlMs + SLACK_MS ? 'overdue' : 'unknown';
}

/**
 * Redis does not keep how long a lease is. All calls for a resource mostly state the same, so what this process asks for
 * is a good guess; the default of the module is one that may be wrong. It is none where it does not fit: the lease is at
 * least as long as what is left, and at most as long as that and the time held. An earlier look narrows that: it shows
 * whether the lease was renewed since.
 */
function lengthOf(
  { ttlMs, heldMs }: Holder,
  state: LockState,
  { wanted, defaultLeaseMs }: OwnPart,
  statedMs: number | undefined,
  between: BetweenLooks | undefined,
): LeaseLength | undefined {
  const guesses = [
    { leaseMs: statedMs, isGuess: false, isDefault: false },
    { leaseMs: wanted?.leaseMs, isGuess: true, isDefault: false },
    { leaseMs: defaultLeaseMs, isGuess: true, isDefault: true },
  ];
  const leastMs = between?.what === 'notRenewed' ? between.leastMs : 0;
  const mostMs = between?.what === 'renewed' ? Math.min(between.mostMs, heldMs) : heldMs;
  for (const { leaseMs, isGuess, isDefault } of guesses) {
    if (leaseMs === undefined) continue;
    // A holder that was seen to renew its lease lives: a guess by which it is overdue is wrong.
    const mostOfGuessMs = between?.what === 'renewed' && isGuess ? Math.min(mostMs, leaseMs / OVERDUE_PART) : mostMs;
    const fits = ttlMs + leastMs <= leaseMs + SLACK_MS && leaseMs <= ttlMs + mostOfGuessMs + SLACK_MS;
    // Together they are just this long, so it is this lease, and it was never renewed.
    const isWhole = Math.abs(ttlMs + heldMs - leaseMs) <= SLACK_MS;
    if (fits && (!isDefault || isWhole || !mayBeAnother(leaseMs, ttlMs, state))) return { leaseMs, isGuess };
  }
  return undefined;
}

/**
 * Whether the places in the queue show that the leases may have another length. A place is never longer than the lease that its
 * waiter asks for, and if the waiter lives, not much shorter than half of it.
 */
function mayBeAnother(leaseMs: number, ttlMs: number, { waiters }: LockState): boolean {
  const longestMs = Math.max(0, ...waiters.map(({ placeMs = 0 }) => placeMs));
  if (longestMs === 0) return false;
  if (longestMs > leaseMs + SLACK_MS) return true;
  // Either all waiters have died, or their leases are shorter.
  if (isPlaceOverdue(longestMs, leaseMs)) return ttlMs <= OVERDUE_PART * (longestMs + KEEP_SLACK_MS);
  const isOverdue = leaseMs - ttlMs > leaseMs / OVERDUE_PART;
  // A lease as long as the longest place would be renewed in time.
  return isOverdue && longestMs < leaseMs - SLACK_MS && longestMs <= OVERDUE_PART * ttlMs + SLACK_MS;
}

/** After this time without a keep, the waiter has most likely died. */
export function overdueKeepMs(leaseMs: number): number {
  return LATE_KEEP * keepPeriodMs(leaseMs) + KEEP_SLACK_MS;
}

function isPlaceOverdue(placeMs: number, leaseMs: number): boolean {
  return leaseMs - placeMs > overdueKeepMs(leaseMs);
}

/** The waiters of other processes that do not keep their places in time, as far as it can be told. */
export interface SilentWaiters {
  readonly count: number;
  /** How long ago each of them kept its place, at least. */
  readonly keptMsAgo: number;
  /** The lease that they are taken to ask for: what is left of a place says nothing without it. */
  readonly length: LeaseLength;
}

/** @returns undefined if there is none, or if no lease is known that they could ask for */
export function silentWaiters(
  { mode, waiters }: LockState,
  leases: readonly SeenLease[],
  { instanceId: ownId, wanted, defaultLeaseMs }: OwnPart,
  statedMs: number | undefined,
  earlier?: EarlierLook,
): SilentWaiters | undefined {
  const seen = mode === null ? defaultLeaseMs : leases.find(({ length }) => length)?.length?.leaseMs;
  const leaseMs = statedMs ?? wanted?.leaseMs ?? seen;
  if (leaseMs === undefined) return undefined;
  const silent = waiters.flatMap((waiter) => {
    const { instanceId, placeMs } = waiter;
    if (instanceId === ownId || placeMs === undefined || earlier?.isAlive(waiter)) return [];
    return isPlaceOverdue(placeMs, leaseMs) ? [placeMs] : [];
  });
  if (silent.length === 0) return undefined;
  const keptMsAgo = leaseMs - Math.max(...silent);
  return { count: silent.length, keptMsAgo, length: { leaseMs, isGuess: statedMs === undefined } };
}
