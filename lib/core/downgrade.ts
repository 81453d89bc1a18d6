import { type Answer, answerWithin } from './answer.js';
import type { LeaseWorkings } from './lease-workings.js';
import type { Hold } from './hold.js';

/**
 * Makes a writer a reader, in place. It is one from now on, whatever comes of the command: who may have let readers in must
 * not write any more. Other readers of this process may join at once, because the store still lets nobody else in.
 */
export async function downgrade(hold: Hold, workings: LeaseWorkings): Promise<Answer<boolean>> {
  const { tenure } = hold;
  tenure.mode = 'read';
  const answer = hold.inOrder(async () => {
    const leaseMs = hold.renewalMs();
    const renewal = tenure.renewing(workings.clock.now(), leaseMs);
    const command = workings.store.downgrade(hold.ownership, leaseMs);
    const result = await answerWithin(workings.alarms, command, hold.attemptTimeoutMs);
    if (result.outcome === 'answered' && result.value) {
      tenure.isReadLock = true;
      tenure.confirm(renewal);
    }
    return result;
  });
  // After the command was sent: whoever asks the store for more is behind it.
  workings.contention.downgraded(hold);
  const known = await answer;
  if (known.outcome === 'answered' && !known.value) tenure.takenOver();
  return known;
}
