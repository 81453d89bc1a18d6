import { type Answer, retryUnexecuted } from '../store/ask.js';
import type { Hold } from '../holding/hold.js';
import type { LeaseDeps } from './lease-deps.js';
import { asStoreError } from '../store/lock-store.js';

/** Tells the store how many leases stand on a hold, which starts the lease anew. One at a time: see {@link Hold.inOrder}. */
export function sendDepth(
  hold: Hold,
  { store, clock, alarms }: LeaseDeps,
  timeoutMs: number,
): Promise<Answer<boolean>> {
  const send = async (): Promise<boolean> => {
    const leaseMs = hold.renewalMs();
    const renewal = hold.storeLease.renewing(clock.now(), leaseMs);
    try {
      const isOwner = await store.setDepth(hold.ownership, hold.depth, leaseMs);
      if (isOwner) hold.storeLease.confirm(renewal);
      return isOwner;
    } catch (error) {
      if (asStoreError(error).failure !== 'unknown') hold.storeLease.dismiss(renewal);
      throw error;
    }
  };
  return retryUnexecuted(alarms, send(), timeoutMs, () => (hold.isHeld() ? send() : undefined));
}
