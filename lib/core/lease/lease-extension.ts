import { ask } from '../store/ask.js';
import type { Hold } from '../holding/hold.js';
import type { LeaseDeps } from './lease-deps.js';
import { asStoreError } from '../store/lock-store.js';

/**
 * Starts the lease of a hold anew, and makes it that long from now on, for the watchdog too.
 *
 * @throws LockUnavailableError when the store does not answer; the lease then runs on to its old end
 */
export async function extend(hold: Hold, deps: LeaseDeps, leaseMs: number): Promise<void> {
  const { store, clock, alarms, watchdog } = deps;
  const { storeLease, ownership, attemptTimeoutMs } = hold;
  let sentAt = 0;
  let lastsMs = leaseMs;
  const send = (): Promise<boolean> => {
    sentAt = clock.now();
    // Others who read beside it have their own idea of how long.
    const isAlone = storeLease.holders.length === 1;
    lastsMs = isAlone ? leaseMs : Math.max(leaseMs, storeLease.leaseMs);
    const renewalMs = hold.renewalMs(lastsMs);
    const renewal = storeLease.renewing(sentAt, renewalMs, isAlone);
    const { nextRenewalAt } = storeLease;
    // It may shorten the lease: then the watchdog must not come too late.
    storeLease.nextRenewalAt = Math.min(nextRenewalAt, sentAt + lastsMs / 3);
    watchdog.watch(hold);
    const command = store.renew(ownership, renewalMs, isAlone);
    // Also when nobody waits for the reply any more.
    command.then(
      (stillOwner) => (stillOwner ? storeLease.confirm(renewal) : storeLease.takenOver()),
      (error: unknown) => {
        if (asStoreError(error).failure === 'unknown') return storeLease.forget(renewal);
        storeLease.dismiss(renewal);
        storeLease.nextRenewalAt = Math.max(storeLease.nextRenewalAt, nextRenewalAt);
      },
    );
    return command;
  };
  await ask(alarms, send, attemptTimeoutMs, 'extend', ownership.resource, () => hold.isHeld());
  if (!hold.isHeld()) return;
  storeLease.leaseMs = lastsMs;
  storeLease.nextRenewalAt = sentAt + storeLease.leaseMs / 3;
  watchdog.watch(hold);
}
