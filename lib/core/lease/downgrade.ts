import { type Answer, insistWithin } from '../store/ask.js';
import type { LeaseWorkings } from './lease-deps.js';
import type { Hold } from '../holding/hold.js';
import { asStoreError } from '../store/lock-store.js';

/**
 * Makes a writer a reader, in place. It is one from now on, whatever comes of the command: who may have let readers in must
 * not write any more. Other readers of this process may join at once, because the store still lets nobody else in.
 */
export async function downgrade(hold: Hold, workings: LeaseWorkings): Promise<Answer<boolean>> {
  const { tenure } = hold;
  tenure.mode = 'read';
  const send = async (): Promise<boolean> => {
    const leaseMs = hold.renewalMs();
    const renewal = tenure.renewing(workings.clock.now(), leaseMs);
    try {
      const isOwner = await workings.store.downgrade(hold.ownership, leaseMs);
      if (isOwner) {
        tenure.isReadLock = true;
        tenure.confirm(renewal);
      }
      return isOwner;
    } catch (error) {
      if (asStoreError(error).failure !== 'unknown') tenure.dismiss(renewal);
      throw error;
    }
  };
  const again = () => (hold.isHeld() ? send() : undefined);
  const answer = hold.inOrder(() => insistWithin(workings.alarms, send(), hold.attemptTimeoutMs, again));
  // After the command was sent: whoever asks the store for more is behind it.
  workings.contention.downgraded(hold);
  const known = await answer;
  if (known.outcome === 'answered' && !known.value) tenure.takenOver();
  return known;
}
