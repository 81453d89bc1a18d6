import { type Answer, retryUnexecuted } from '../store/ask.js';
import type { LeaseDeps } from './lease-deps.js';
import type { Hold } from '../holding/hold.js';
import { asStoreError } from '../store/lock-store.js';

/**
 * Makes a writer a reader, in place. It is one from now on, whatever comes of the command: who may have let readers in must
 * not write any more. Other readers of this process may join at once, because the store still lets nobody else in.
 */
export async function downgrade(hold: Hold, deps: LeaseDeps): Promise<Answer<boolean>> {
  const { storeLease } = hold;
  storeLease.mode = 'read';
  const send = async (): Promise<boolean> => {
    const leaseMs = hold.renewalMs();
    const renewal = storeLease.renewing(deps.clock.now(), leaseMs);
    try {
      const isOwner = await deps.store.downgrade(hold.ownership, leaseMs);
      if (isOwner) {
        storeLease.isReadLock = true;
        storeLease.confirm(renewal);
      }
      return isOwner;
    } catch (error) {
      if (asStoreError(error).failure !== 'unknown') storeLease.dismiss(renewal);
      throw error;
    }
  };
  const again = () => (hold.isHeld() ? send() : undefined);
  const answer = hold.inOrder(() => retryUnexecuted(deps.alarms, send(), hold.attemptTimeoutMs, again));
  // After the command was sent: whoever asks the store for more is behind it.
  deps.localQueues.downgraded(hold);
  const known = await answer;
  if (known.outcome === 'answered' && !known.value) storeLease.takenOver();
  return known;
}
