import type { LockMode } from '../api/lock-mode.js';
import { LEADER_PREFIX } from '../api/resource.js';
import type { LockState } from '../store/lock-state.js';
import type { LockCause } from './explanation.js';
import type { OwnPart } from './own-part.js';
import type { SeenLease, SilentWaiters } from './seen-lease.js';

/** A holder is slow if it has held the lock for this long, and others wait. */
const SLOW_MS = 5_000;

/** What a call wants to ask for, or asks for now. */
export interface Wanted {
  readonly mode?: LockMode | undefined;
  readonly permits?: number | undefined;
}

/** The most likely reason why a call cannot get the resource: that of the first rule that fits. */
export function likelyCause(
  state: LockState,
  leases: readonly SeenLease[],
  own: OwnPart,
  wanted: Wanted,
  silent: SilentWaiters | undefined,
): LockCause {
  const { mode, waiters } = state;
  const isSilentQueue = silent?.count === waiters.length;
  if (mode === null) return causeOfFree(state, own, isSilentQueue);
  if (leases.some((lease) => lease.own?.isOfThisCall)) return 'heldByThisCall';
  if (leases.some((lease) => lease.own?.isKeptByTransaction)) return 'transaction';
  if (isMismatch(state, wanted)) return 'mismatch';
  // A dead holder is in the way of all calls, whatever the other holders do that share the resource with it.
  if (leases.some(({ holder }) => holder.isKept)) return 'kept';
  const isDead = leases.some(({ status }) => status === 'overdue');
  if (isDead && isSilentQueue) return 'deadWaiters';
  if (isDead)
    return leases.every((lease) => lease.status !== 'overdue' || isFixed(lease, own)) ? 'fixedLease' : 'holderDead';
  if (leases.some((lease) => isFixed(lease, own))) return 'fixedLease';
  if (state.resource.startsWith(LEADER_PREFIX)) return 'leadership';
  if (waiters.length === 0 && own.waiting === 0) return 'inUse';
  if (own.waiting > 0 && leases.some(({ holder }) => holder.isThisProcess)) return 'heldByThisProcess';
  return leases.some(isSlow) ? 'holderSlow' : 'inUse';
}

export function isSlow({ holder }: SeenLease): boolean {
  return holder.heldMs >= SLOW_MS;
}

/**
 * A release grants the resource to the next one that waits. So a free resource with a queue is what a dead holder has
 * left, or a key that was deleted. A living waiter takes it just after the lease of the holder, or when it keeps its
 * place.
 */
function causeOfFree({ waiters }: LockState, { instanceId }: OwnPart, isSilentQueue: boolean): LockCause {
  if (waiters.length === 0) return 'free';
  if (waiters.some((waiter) => waiter.instanceId === instanceId)) return 'inUse';
  return isSilentQueue ? 'deadWaiters' : 'inUse';
}

/** Whether a call that asks as this one does, or one that waits, can never be granted as the resource is in use now. */
function isMismatch({ mode, permits, waiters }: LockState, wanted: Wanted): boolean {
  const isSemaphore = mode === 'semaphore';
  if (wanted.permits !== undefined && (!isSemaphore || wanted.permits > permits!.total)) return true;
  if (wanted.mode !== undefined && isSemaphore) return true;
  return isSemaphore && waiters.some((waiter) => (waiter.permits ?? 0) > permits!.total);
}

function isFixed({ status, holder, isFirst }: SeenLease, { wanted }: OwnPart): boolean {
  if (status === 'fixed') return true;
  // Another process has never renewed it, and the same calls of this process ask for a fixed lease.
  return isFirst && !holder.isThisProcess && wanted?.watchdog === false;
}
