import { LockReentryError } from '../api/lease-errors.js';
import { LockUnavailableError } from '../api/errors.js';
import type { LockMode, PermitRequest, ResolvedLockOptions } from '../api/lock-options.js';
import type { Hold } from '../holding/hold.js';
import type { LockContext } from '../holding/lock-context.js';
import { sendDepth, tellDepth } from './changes.js';
import type { KernelParts } from './kernel-parts.js';
import { SingleLease } from './single-lease.js';

/** @throws LockReentryError when this context, which holds the lock, cannot enter again */
export function checkReentry(hold: Hold, options: ResolvedLockOptions): void {
  if (mayEnter(hold.mode, options.mode)) return;
  const { resource } = hold.owner;
  if (hold.mode === 'read' && options.mode === 'write') throw LockReentryError.upgrade(resource);
  throw LockReentryError.waitingForItself(resource, hold.mode, options.mode);
}

/** @throws LockReentryError when the permits that this context holds leave too few for it to ever get these */
export function checkOwnPermits(resource: string, { count, total }: PermitRequest, context: LockContext): void {
  const held = context.permits(resource);
  if (held > 0 && held + count > total) throw LockReentryError.waitingForOwnPermits(resource, held, count, total);
}

export async function reenter(hold: Hold, options: ResolvedLockOptions, deps: KernelParts): Promise<SingleLease> {
  const { resource } = hold.owner;
  checkReentry(hold, options);
  hold.depth++;
  if (options.mode === 'write') hold.writers++;
  const lease = new SingleLease(hold, deps, options.mode);
  // Redis knows that this process reads, but not how often.
  if (hold.mode === 'read' || isWatched(hold)) tellDepth(hold, deps);
  else if (hold.checkHeld()) {
    const answer = await sendDepth(hold, deps, options.attemptTimeoutMs);
    if (answer.outcome !== 'answered') {
      await lease.end().catch(() => {});
      throw new LockUnavailableError(resource, 'record the re-entry of', answer.outcome, answer.error);
    }
  }
  if (hold.checkHeld()) {
    // Only from now on does its minimum count: an entry that fails leaves none.
    hold.storeLease.raiseMinHold(options.minHoldMs);
    return lease;
  }
  await lease.end().catch(() => {});
  throw hold.lossError();
}

/**
 * Returns true if the lease needs no renewal for an entry: it is renewed anyway, and most of it is left. Then nothing
 * of the entry depends on the store. See "Re-entry" in docs/internals/protocol.md.
 */
function isWatched(hold: Hold): boolean {
  return hold.renewable && hold.remainingMs() > hold.leaseMs / 2;
}

/** Returns true if a context that holds a resource may enter it again: never with more rights than it has. */
function mayEnter(held: LockMode, wanted: LockMode): boolean {
  if (held === 'write') return wanted === 'write' || wanted === 'read';
  return held === wanted && (held === 'reentrant' || held === 'read');
}
