import { retryUnexecuted, type Settled } from '../store/ask.js';
import { downgrade, withGroup, tellDepth } from './changes.js';
import { LeaseLostError } from '../api/lease-errors.js';
import { LockUnavailableError } from '../api/errors.js';
import type { Hold } from '../holding/hold.js';
import type { LeaseDeps } from './lease-deps.js';

/** A release that has ended without a command, so no call waits for it. */
export const OVER = Promise.resolve();
const HANDED_OVER = { outcome: 'answered', value: true } as const;

/**
 * Ends the last lease on a hold: the lock is handed over to the next call of this process, or released in the store.
 * `StoreLease.releasedBy` may replace the command: a job's lock ends with its run.
 */
export function releaseHold(hold: Hold, deps: LeaseDeps): Promise<void> {
  const ended = releaseAll(hold, deps);
  if (!hold.options.backgroundRelease) return ended;
  ended.catch(() => {}); // the observers know
  return OVER;
}

function releaseAll(hold: Hold, deps: LeaseDeps): Promise<void> {
  const wasHeld = hold.end();
  const { alarms, localQueues, watchdog } = deps;
  const endedAt = hold.endedAt!;
  const heldMs = endedAt - hold.acquiredAt;
  const released = localQueues.release(hold, () => {
    watchdog.unwatch(hold);
    conclude(hold, deps, HANDED_OVER, wasHeld, heldMs);
  });
  if (released === undefined) return OVER;
  // Redis is at work from here on: what can wait until then costs the next holder nothing.
  watchdog.unwatch(hold);
  const again = (): Promise<boolean> => deps.orphanReleases.release(hold.storeLease);
  const answer = retryUnexecuted(alarms, released, hold.attemptTimeoutMs, again, endedAt);
  return answer.then((known) => conclude(hold, deps, known, wasHeld, heldMs));
}

/** One of several leases on a hold ends. If Redis misses this, the last release still frees the lock. */
export async function releaseEntry(hold: Hold, deps: LeaseDeps): Promise<void> {
  // Only readers are left: the last writing entry has ended.
  if (hold.mode === 'write' && hold.writers === 0 && hold.checkHeld()) return void (await downgrade(hold, deps));
  tellDepth(hold, deps);
}

function conclude(hold: Hold, deps: LeaseDeps, answer: Settled<boolean>, wasHeld: boolean, heldMs: number): void {
  const { owner, fencingToken } = hold;
  const { resource } = owner;
  const { active, observers, orphanReleases, observation } = deps;
  active.delete(hold);
  if (!wasHeld) {
    if (observers.wants('releasedAfterLoss'))
      observers.emit({ type: 'releasedAfterLoss', ...observers.describe(hold) });
  } else if (answer.outcome === 'answered') {
    if (!answer.value) {
      const error = new LeaseLostError(resource, 'takenOver', fencingToken);
      observation.ended(hold, 'lost', error);
      if (observers.wants('lost'))
        observers.emit({ type: 'lost', ...observers.describe(hold), heldMs, reason: 'takenOver', error });
      return;
    }
    observation.ended(hold, 'released');
    if (observers.wants('released')) {
      // Written out: to spread one object into another costs half a microsecond.
      const { mode, group } = hold.options;
      observers.emit({
        type: 'released',
        service: observers.service,
        resource,
        mode,
        group: observers.groups.of(resource, group),
        fencingToken,
        heldMs,
      });
    }
  } else {
    const error = withGroup(new LockUnavailableError(resource, 'release', answer.outcome, answer.error), hold, deps);
    orphanReleases.start(owner, hold);
    observation.ended(hold, 'released', error);
    if (observers.wants('releaseFailed')) {
      const isEnd = !deps.watchdog.hasLeft(hold);
      observers.emit({ type: 'releaseFailed', ...observers.describe(hold), heldMs, isEnd, error });
    }
    throw error;
  }
}
