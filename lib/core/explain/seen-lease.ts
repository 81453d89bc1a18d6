import { fencingTickOf } from '../store/fencing-token.js';
import type { LockHolder, LockState } from '../store/lock-store.js';
import type { OwnHold, OwnPart } from './own-part.js';

/** The watchdog renews a lease after a third of it. One that is not renewed after half of it is overdue. */
const OVERDUE_PART = 2;
/** Clocks and answers are not exact. */
const SLACK_MS = 100;
/** A living waiter asks at least this often, and so renews its place. */
const HEARTBEAT_MS = 1_000;
/** A place that was not renewed for longer is overdue. */
const SILENT_MS = 3 * HEARTBEAT_MS;

/** How long a lease is in all. If that is a guess, the sentences say so. */
export interface LeaseLength {
  readonly leaseMs: number;
  readonly isGuess: boolean;
}

/** What can be said of the lease of one holder. */
export interface SeenLease {
  readonly holder: LockHolder;
  /** Of this process. */
  readonly own: OwnHold | undefined;
  readonly isThisProcess: boolean;
  readonly length: LeaseLength | undefined;
  readonly renewedMsAgo: number | undefined;
  /**
   * `new`: its first renewal is not due yet. `renewing`: renewed in time. `overdue`: not renewed in time. `fixed`: never
   * renewed.
   */
  readonly status: 'new' | 'renewing' | 'overdue' | 'fixed' | 'unknown';
}

export function seenLease(holder: LockHolder, state: LockState, own: OwnPart, statedMs?: number): SeenLease {
  const isThisProcess = holder.instanceId === own.instanceId;
  const mine = isThisProcess ? ownHoldOf(holder, own) : undefined;
  if (mine) {
    const { leaseMs, renewedMsAgo, isRenewed } = mine;
    const length = { leaseMs, isGuess: false };
    const status = !isRenewed ? 'fixed' : statusOf(leaseMs, renewedMsAgo, mine.heldMs);
    return { holder, own: mine, isThisProcess, length, renewedMsAgo, status };
  }
  const length = lengthOf(holder, state, own, statedMs);
  if (!length) return { holder, own: undefined, isThisProcess, length, renewedMsAgo: undefined, status: 'unknown' };
  const renewedMsAgo = Math.max(0, length.leaseMs - holder.ttlMs);
  const status = statusOf(length.leaseMs, renewedMsAgo, holder.heldMs);
  return { holder, own: undefined, isThisProcess, length, renewedMsAgo, status };
}

/** Leases that this process passes on in memory count up from the token that Redis has. */
function ownHoldOf({ fencingToken }: LockHolder, { holds }: OwnPart): OwnHold | undefined {
  const tick = fencingTickOf(fencingToken);
  const meant = holds.filter((hold) => fencingTickOf(hold.fencingToken) === tick);
  return meant.find((hold) => hold.fencingToken === fencingToken) ?? meant[0];
}

function statusOf(leaseMs: number, renewedMsAgo: number, heldMs: number | undefined): SeenLease['status'] {
  if (renewedMsAgo > leaseMs / OVERDUE_PART) return 'overdue';
  return heldMs !== undefined && renewedMsAgo >= heldMs - SLACK_MS ? 'new' : 'renewing';
}

/**
 * Redis does not keep how long a lease is. All calls for a resource mostly state the same, so what this process asks for,
 * or what the places in the queue show, is a good guess; the default of the module is one that may be wrong. It is none
 * where it does not fit: the lease is at least as long as what is left, and at most as long as that and the time held.
 */
function lengthOf(
  { ttlMs, heldMs = Infinity }: LockHolder,
  { waiters }: LockState,
  { wanted, defaultLeaseMs }: OwnPart,
  statedMs: number | undefined,
): LeaseLength | undefined {
  const places = waiters.flatMap(({ placeMs }) => (placeMs === undefined ? [] : [placeMs]));
  const guesses = [
    { leaseMs: statedMs, isGuess: false, isDefault: false },
    { leaseMs: wanted?.leaseMs, isGuess: true, isDefault: false },
    { leaseMs: defaultLeaseMs, isGuess: true, isDefault: true },
  ];
  const longestPlaceMs = Math.max(0, ...places);
  for (const { leaseMs, isGuess, isDefault } of guesses) {
    if (leaseMs === undefined) continue;
    const fits = ttlMs <= leaseMs + SLACK_MS && leaseMs <= ttlMs + heldMs + SLACK_MS;
    // All that is seen may as well be short leases that are renewed in time.
    const mayBeShort = longestPlaceMs + SILENT_MS < leaseMs && ttlMs <= longestPlaceMs + HEARTBEAT_MS + SLACK_MS;
    const isWeak = isDefault && places.length > 0 && mayBeShort;
    if (fits && !isWeak) return { leaseMs, isGuess };
  }
  return undefined;
}

/** How many waiters do not ask any more, as far as their places show: a place is renewed every second. */
export function countSilent(
  { mode, waiters }: LockState,
  leases: readonly SeenLease[],
  { instanceId: ownId, wanted, defaultLeaseMs }: OwnPart,
  statedMs: number | undefined,
): number {
  const seen = mode === null ? defaultLeaseMs : leases.find(({ length }) => length)?.length?.leaseMs;
  const leaseMs = statedMs ?? wanted?.leaseMs ?? seen;
  if (leaseMs === undefined) return 0;
  const silentMs = leaseMs - Math.max(SILENT_MS, leaseMs / OVERDUE_PART);
  return waiters.filter(
    ({ instanceId, placeMs }) => instanceId !== ownId && placeMs !== undefined && placeMs < silentMs,
  ).length;
}
