import { type Answer, retryUnexecuted } from '../store/ask.js';
import { downgrade, sendDepth } from './changes.js';
import { LeaseLostError } from '../api/lease-errors.js';
import { LockUnavailableError } from '../api/errors.js';
import type { Hold } from '../holding/hold.js';
import type { LeaseDeps } from './lease-deps.js';
import { releaseInStore } from '../holding/release-in-store.js';

const OVER = Promise.resolve();
const HANDED_OVER = { outcome: 'answered', value: true } as const;

/**
 * The last lease on a hold ends: the lock is handed over to the next call of this process, or released in the store.
 *
 * @throws LockUnavailableError when it is not known whether the lock was released
 */
export function releaseHold(hold: Hold, deps: LeaseDeps): Promise<void> {
  const { alarms, localQueues, watchdog } = deps;
  const wasHeld = hold.end();
  const { endedAt } = hold;
  const heldMs = endedAt - hold.acquiredAt;
  watchdog.unwatch(hold);
  const released = localQueues.release(hold, () => conclude(hold, deps, HANDED_OVER, wasHeld, heldMs));
  if (released === undefined) return OVER;
  const again = (): Promise<boolean> => releaseInStore(hold.storeLease, deps);
  const answer = retryUnexecuted(alarms, released, hold.attemptTimeoutMs, again, endedAt);
  const ended = answer.then((known) => conclude(hold, deps, known, wasHeld, heldMs));
  if (!hold.backgroundRelease) return ended;
  ended.catch(() => {}); // the observers know
  return OVER;
}

/** One of several leases on a hold ends. If Redis misses this, the last release still frees the lock. */
export async function releaseEntry(hold: Hold, deps: LeaseDeps): Promise<void> {
  // Only readers are left: the last writing entry has ended.
  if (hold.mode === 'write' && hold.writers === 0 && hold.isHeld()) return void (await downgrade(hold, deps));
  await hold.inOrder(async () => {
    if (!hold.isHeld() || hold.mode === 'read') return;
    const answer = await sendDepth(hold, deps, hold.attemptTimeoutMs);
    if (answer.outcome === 'answered' && !answer.value) hold.lose('takenOver');
  });
}

/** @throws LockUnavailableError */
function conclude(
  hold: Hold,
  { active, observers, orphanReleases }: LeaseDeps,
  answer: Answer<boolean>,
  wasHeld: boolean,
  heldMs: number,
): void {
  const { owner, fencingToken } = hold;
  const { resource } = owner;
  active.delete(hold);
  if (!wasHeld) {
    observers.emit({ type: 'releasedAfterLoss', resource, fencingToken });
  } else if (answer.outcome === 'answered') {
    if (answer.value) observers.emit({ type: 'released', resource, fencingToken, heldMs });
    else {
      const error = new LeaseLostError(resource, 'takenOver', fencingToken);
      observers.emit({ type: 'lost', resource, fencingToken, reason: error.reason, error });
    }
  } else if (answer.outcome !== 'aborted') {
    const error = new LockUnavailableError(resource, 'release', answer.outcome, answer.error);
    orphanReleases.start(owner, hold);
    observers.emit({ type: 'releaseFailed', resource, fencingToken, error });
    throw error;
  }
}
