import { askFor } from './changes.js';
import type { LeaseDeps } from './lease-deps.js';
import type { Hold } from '../holding/hold.js';
import { asStoreError } from '../store/store-error.js';
import type { LockOwner } from '../store/lock-store.js';
import { createOwnerId } from '../store/ask.js';
import type { LeaseTransfer } from './transfer-text.js';

/**
 * Moves a lock to a new owner id that only the transferred text contains. The old id is worthless after that: commands
 * that it still sends, late or twice, change nothing. Without an answer, the lease goes on here until it is known
 * whether it has moved; if it has, it is released, because no process can adopt it. `onMoved` is called as soon as the
 * move is known, before any other reply is read.
 */
export async function transfer(
  hold: Hold,
  deps: LeaseDeps,
  leaseMs: number,
  onMoved: (hasShared: boolean) => void,
): Promise<LeaseTransfer | undefined> {
  const { storeLease, owner, fencingToken } = hold;
  const { store, clock, random, watchdog, orphanReleases } = deps;
  const { permits, permitsLeft } = storeLease;
  const { label } = hold;
  const newOwner: LockOwner = {
    resource: owner.resource,
    mode: hold.mode,
    id: createOwnerId(store.clientId, random),
    // The next process must not count on permits that may be free already.
    permits: permits && permitsLeft !== undefined ? { ...permits, count: permitsLeft } : permits,
    ...(label !== undefined && { label }),
  };
  // The store may still show that of a call before.
  const marked = storeLease.label === label ? undefined : { label: label ?? '' };
  const limits = { leaseMs, attemptTimeoutMs: hold.attemptTimeoutMs };
  // Also if no process will adopt it.
  orphanReleases.retain(newOwner, storeLease);
  let isAwaited = true;
  let mayHaveMoved = true;
  let share = false;
  const move = (isShared: boolean): Promise<number | null> =>
    store.transfer(owner, { to: newOwner.id, leaseMs, fencingToken, share: isShared, ...marked }).then(
      (token) => {
        if (token !== null && isAwaited) onMoved(isShared);
        if (token !== null && !isAwaited) orphanReleases.start(newOwner, limits);
        if (token === null || (!isAwaited && !isShared)) storeLease.takenOver();
        return token;
      },
      (error: unknown) => {
        const cause = asStoreError(error);
        mayHaveMoved = cause.failure === 'unknown';
        if (!isShared && mayHaveMoved) {
          // A renewal finds out whether it has moved.
          storeLease.nextRenewalAt = clock.now();
          watchdog.watch(hold);
        } else if (!isShared) storeLease.openTransfers--;
        throw cause;
      },
    );
  const send = (): Promise<number | null> => {
    mayHaveMoved = true;
    // Other readers of this process keep it.
    share = storeLease.holders.length > 1;
    if (share) return move(true);
    // Once it has moved, it ends unless it is adopted in time. Until the answer it is not trusted for longer than that.
    const moveAll = (): Promise<number | null> => {
      storeLease.openTransfers++;
      watchdog.watch(hold);
      return move(false);
    };
    return storeLease.renewBy(leaseMs, moveAll, true);
  };
  try {
    const token = await askFor(hold, deps, send, 'transfer');
    if (token === null) return undefined;
  } catch (error) {
    isAwaited = false;
    // No process will adopt it. But it must not be free while this process still trusts it.
    if (mayHaveMoved && share) orphanReleases.start(newOwner, limits);
    else if (mayHaveMoved) hold.onOver(() => orphanReleases.again(newOwner, limits));
    throw error;
  }
  return { ...newOwner, fencingToken, leaseMs: storeLease.leaseMs, minHoldMs: storeLease.minHoldMs };
}
