import { ask } from '../store/ask.js';
import type { Hold } from '../holding/hold.js';
import type { LeaseWorkings } from './lease-deps.js';
import { asStoreError } from '../store/lock-store.js';

/**
 * Starts the lease of a hold anew, and makes it that long from now on, for the watchdog too.
 *
 * @throws LockUnavailableError when the store does not answer; the lease then runs on to its old end
 */
export async function extend(hold: Hold, workings: LeaseWorkings, leaseMs: number): Promise<void> {
  const { store, clock, alarms, watchdog } = workings;
  const { tenure, ownership, attemptTimeoutMs } = hold;
  let sentAt = 0;
  let lastsMs = leaseMs;
  const send = (): Promise<boolean> => {
    sentAt = clock.now();
    // Others who read beside it have their own idea of how long.
    const isAlone = tenure.holders.length === 1;
    lastsMs = isAlone ? leaseMs : Math.max(leaseMs, tenure.leaseMs);
    const renewalMs = hold.renewalMs(lastsMs);
    const renewal = tenure.renewing(sentAt, renewalMs, isAlone);
    const { nextRenewalAt } = tenure;
    // It may shorten the lease: then the watchdog must not come too late.
    tenure.nextRenewalAt = Math.min(nextRenewalAt, sentAt + lastsMs / 3);
    watchdog.watch(hold);
    const command = store.renew(ownership, renewalMs, isAlone);
    // Also when nobody waits for the reply any more.
    command.then(
      (stillOwner) => (stillOwner ? tenure.confirm(renewal) : tenure.takenOver()),
      (error: unknown) => {
        if (asStoreError(error).failure === 'unknown') return tenure.forget(renewal);
        tenure.dismiss(renewal);
        tenure.nextRenewalAt = Math.max(tenure.nextRenewalAt, nextRenewalAt);
      },
    );
    return command;
  };
  await ask(alarms, send, attemptTimeoutMs, 'extend', ownership.resource, () => hold.isHeld());
  if (!hold.isHeld()) return;
  tenure.leaseMs = lastsMs;
  tenure.nextRenewalAt = sentAt + tenure.leaseMs / 3;
  watchdog.watch(hold);
}
