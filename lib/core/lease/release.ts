import { type Answer, retryUnexecuted } from '../store/ask.js';
import { downgrade, sendDepth } from './changes.js';
import { LockUnavailableError } from '../api/errors.js';
import type { Hold } from '../holding/hold.js';
import type { LeaseDeps } from './lease-deps.js';

const OVER = Promise.resolve();
const PASSED_ON = { outcome: 'answered', value: true } as const;

/**
 * The last lease on a hold ends: the lock goes to the next one, here or in the store.
 *
 * @throws LockUnavailableError when it is not known whether the lock was released
 */
export function giveBack(hold: Hold, deps: LeaseDeps): Promise<void> {
  const { alarms, localQueues, store, watchdog } = deps;
  const wasHeld = hold.end();
  const { endedAt } = hold;
  const heldMs = endedAt - hold.acquiredAt;
  watchdog.unwatch(hold);
  const released = localQueues.giveBack(hold, () => conclude(hold, deps, PASSED_ON, wasHeld, heldMs));
  if (released === undefined) return OVER;
  const again = (): Promise<boolean> => store.release(hold.ownership);
  const answer = retryUnexecuted(alarms, released, hold.attemptTimeoutMs, again, endedAt);
  const ended = answer.then((known) => conclude(hold, deps, known, wasHeld, heldMs));
  if (!hold.backgroundRelease) return ended;
  ended.catch(() => {}); // the observers know
  return OVER;
}

/** One of the leases on a hold ends. If Redis misses this, the last release frees the lock all the same. */
export async function leaveOne(hold: Hold, deps: LeaseDeps): Promise<void> {
  // The last of those who write has left those who read.
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
  const { ownership, fencingToken } = hold;
  const { resource } = ownership;
  active.delete(hold);
  if (!wasHeld) {
    observers.emit({ type: 'releasedAfterLoss', resource, fencingToken });
  } else if (answer.outcome === 'answered') {
    if (answer.value) observers.emit({ type: 'released', resource, fencingToken, heldMs });
    else observers.emit({ type: 'lost', resource, fencingToken, reason: 'takenOver' });
  } else if (answer.outcome !== 'aborted') {
    const error = new LockUnavailableError(resource, 'release', answer.outcome, answer.error);
    orphanReleases.start(ownership, hold);
    observers.emit({ type: 'releaseFailed', resource, fencingToken, error });
    throw error;
  }
}
