import { ask } from '../store/ask.js';
import type { LeaseDeps } from './lease-deps.js';
import type { Hold } from '../holding/hold.js';
import { asStoreError, type LockOwner } from '../store/lock-store.js';
import type { LeaseTransfer } from './transfer-text.js';

/**
 * Moves a lock to an id id that only the text will know. The one of this process is worth nothing after that: what it
 * still sends, late or twice, changes nothing.
 *
 * @param leaseMs how long the lock waits to be adopted
 * @param onMoved called as soon as it is known, before any other reply is looked at
 * @throws LockUnavailableError when Redis does not answer. The lease goes on here until it is known that it has moved; what
 *   nobody can adopt is then given back
 */
export async function handOn(
  hold: Hold,
  deps: LeaseDeps,
  leaseMs: number,
  onMoved: (hasShared: boolean) => void,
): Promise<LeaseTransfer | undefined> {
  const { storeLease, ownership, fencingToken } = hold;
  const { store, clock, alarms, orphanReleases } = deps;
  const heir: LockOwner = { ...ownership, mode: hold.mode, id: deps.newOwner() };
  const limits = { leaseMs, attemptTimeoutMs: hold.attemptTimeoutMs };
  let isAwaited = true;
  let mayHaveMoved = true;
  let share = false;
  const send = (): Promise<boolean> => {
    // Others of this process read on.
    share = storeLease.holders.length > 1;
    const isShared = share;
    // Once it has moved it ends when nobody adopts it in time: until the answer it is not trusted for longer.
    const renewal = isShared ? undefined : storeLease.renewing(clock.now(), leaseMs, true);
    if (renewal) storeLease.departures++;
    if (renewal) deps.watchdog.watch(hold);
    mayHaveMoved = true;
    const command = store.transfer(ownership, { to: heir.id, leaseMs, fencingToken, share: isShared });
    return command.then(
      (token) => {
        if (token !== null && isAwaited) onMoved(isShared);
        if (token !== null && !isAwaited) orphanReleases.start(heir, limits);
        if (token === null || (!isAwaited && !isShared)) storeLease.takenOver();
        return token !== null;
      },
      (error: unknown) => {
        const cause = asStoreError(error);
        mayHaveMoved = cause.failure === 'unknown';
        if (renewal && mayHaveMoved) {
          storeLease.forget(renewal);
          // A renewal finds out.
          storeLease.nextRenewalAt = clock.now();
          deps.watchdog.watch(hold);
        } else if (renewal) {
          storeLease.departures--;
          storeLease.dismiss(renewal);
        }
        throw cause;
      },
    );
  };
  try {
    const isMoved = await ask(alarms, send, hold.attemptTimeoutMs, 'transfer', ownership.resource, () => hold.isHeld());
    if (!isMoved) return undefined;
  } catch (error) {
    isAwaited = false;
    // Nobody will adopt it. But it must not be free while it is trusted here.
    if (mayHaveMoved && share) orphanReleases.start(heir, limits);
    else if (mayHaveMoved) hold.onOver(() => orphanReleases.again(heir, limits));
    throw error;
  }
  return { ...heir, fencingToken, leaseMs: storeLease.leaseMs };
}
