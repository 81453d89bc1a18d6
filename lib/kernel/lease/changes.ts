import { type Answer, ask, retryUnexecuted, type Settled } from '../store/ask.js';
import type { Hold } from '../holding/hold.js';
import type { KernelParts } from './kernel-parts.js';
import { InvalidLockOptionsError, type LockError, type LockUnavailableError } from '../api/errors.js';
import type { LockMode, ResolvedLockOptions } from '../api/lock-options.js';
import { describeValue } from '../api/validation.js';
import { asStoreError } from '../store/store-error.js';
import { inRootContext } from '../util/async-contexts.js';

/** @throws LockUnavailableError with the group of the hold, when the store does not answer */
export async function askFor<T>(hold: Hold, deps: KernelParts, send: () => Promise<T>, operation: string): Promise<T> {
  const { resource } = hold.owner;
  try {
    return await ask(deps, send, operation, resource, () => hold.checkHeld(), hold.attemptTimeoutMs);
  } catch (error) {
    throw withGroup(error as LockUnavailableError, hold, deps);
  }
}

export function withGroup<E extends LockError>(error: E, { owner, options }: Hold, { observers }: KernelParts): E {
  error.group ??= observers.groups.of(owner.resource, options.group);
  return error;
}

/** Renews the lease. The watchdog uses the new length from now on. Without an answer it keeps its old end. */
export async function extend(hold: Hold, deps: KernelParts, leaseMs: number, operation = 'extend'): Promise<void> {
  const { store, clock, watchdog } = deps;
  const { storeLease, owner } = hold;
  let sentAt = 0;
  let lastsMs = leaseMs;
  const send = (): Promise<boolean> => {
    sentAt = clock.now();
    // Other readers may need a longer lease than this one asks for.
    const isAlone = storeLease.holders.length === 1;
    lastsMs = isAlone ? leaseMs : Math.max(leaseMs, storeLease.leaseMs);
    const renewalMs = hold.renewalMs(lastsMs);
    const { nextRenewalAt } = storeLease;
    const renew = (): Promise<boolean> => {
      // It may make the lease shorter, so the watchdog must not renew too late.
      storeLease.nextRenewalAt = Math.min(nextRenewalAt, sentAt + lastsMs / 3);
      watchdog.watch(hold);
      return store.renew(owner, renewalMs, isAlone);
    };
    const renewed = storeLease.renewBy(renewalMs, renew, isAlone, sentAt);
    // Also if the call has stopped waiting for the reply.
    renewed.then(
      (isOwner) => {
        if (!isOwner) storeLease.takenOver();
      },
      (error: unknown) => {
        if (asStoreError(error).failure === 'unknown') return;
        storeLease.nextRenewalAt = Math.max(storeLease.nextRenewalAt, nextRenewalAt);
      },
    );
    return renewed;
  };
  await askFor(hold, deps, send, operation);
  if (!hold.checkHeld()) return;
  storeLease.leaseMs = lastsMs;
  storeLease.nextRenewalAt = sentAt + storeLease.leaseMs / 3;
  watchdog.watch(hold);
}

/**
 * The maximum part of a fixed lease that may have passed while its call waited for others: the round trips take time,
 * too.
 */
const PASSED = 1 / 20;

/**
 * The leases of a call were renewed while it waited for the last of its resources. From now on they last as requested.
 * A fixed lease is renewed, unless it has only just begun.
 */
export async function beginTogether(
  holds: readonly Hold[],
  options: Pick<ResolvedLockOptions, 'watchdog' | 'maxHoldMs'>,
  latest: number,
  deps: KernelParts,
): Promise<void> {
  const isLate = ({ deadline, leaseMs }: Hold): boolean => !options.watchdog && deadline < latest - leaseMs * PASSED;
  await Promise.all(holds.filter(isLate).map((hold) => extend(hold, deps, hold.leaseMs, 'renew')));
  for (const hold of holds) {
    hold.begin(options);
    // Like every fixed lease: a shutdown waits for it only if work runs under it.
    if (!hold.renewable) deps.active.delete(hold);
    if (hold.checkHeld()) deps.watchdog.watch(hold);
  }
}

/**
 * Makes a writer a reader, in place. It counts as a reader from now on, even if the command fails: readers may be in
 * already, so it must not write any more. Readers of this process can join at once, because the store admits no writer.
 */
export async function downgrade(hold: Hold, deps: KernelParts): Promise<Answer<boolean>> {
  const { storeLease } = hold;
  storeLease.mode = 'read';
  const send = async (): Promise<boolean> => {
    const leaseMs = hold.renewalMs();
    const isOwner = await storeLease.renewBy(leaseMs, () => deps.store.downgrade(hold.owner, leaseMs));
    if (isOwner) storeLease.isDowngraded = true;
    return isOwner;
  };
  const again = () => (hold.checkHeld() ? send() : undefined);
  const answer = hold.inOrder(() => retryUnexecuted(deps.alarms, send(), hold.attemptTimeoutMs, again));
  // After the command was sent, so that further commands to the store come after it.
  deps.localQueues.downgraded(hold);
  const known = await answer;
  if (known.outcome !== 'answered') untilAnswered(hold, deps, () => (storeLease.isReadLock ? undefined : send()));
  else if (!known.value) storeLease.takenOver();
  return known;
}

/**
 * A command that frees something for others has failed. It is sent until it is answered, or until no holder is left:
 * then the release frees it.
 */
function untilAnswered(hold: Hold, { orphanReleases }: KernelParts, send: () => Promise<boolean> | undefined): void {
  const isHeld = () => hold.storeLease.holders.some((holder) => holder.checkHeld());
  const sendIfHeld = () => (isHeld() ? send() : undefined);
  inRootContext(() => void orphanReleases.untilAnswered(sendIfHeld, hold.attemptTimeoutMs));
}

/**
 * Sends the number of leases that are open on a hold, which renews the lease. The lock is lost if the store reports
 * another holder. A reader is the exception, because it has no depth: the downgrade that another reader of the same
 * store lease needed may have been executed before. The reply to that one reports a loss.
 */
export function sendDepth(hold: Hold, { store, alarms }: KernelParts, timeoutMs: number): Promise<Settled<boolean>> {
  const { storeLease, owner } = hold;
  const send = (): Promise<boolean> => {
    const leaseMs = hold.renewalMs();
    storeLease.toldDepth = hold.depth;
    return storeLease.renewBy(leaseMs, () => store.setDepth(owner, hold.depth, leaseMs));
  };
  return hold.inOrder(async () => {
    const answer = await retryUnexecuted(alarms, send(), timeoutMs, () => (hold.checkHeld() ? send() : undefined));
    if (answer.outcome !== 'answered') storeLease.toldDepth = undefined;
    else if (!answer.value && hold.mode !== 'read') hold.lose('takenOver');
    return answer;
  });
}

/**
 * Does the same, but nothing waits for it, because the depth is only shown to operators. It sends one command at a
 * time, so that a loop that enters and leaves sends no more than the store answers. If the store does not answer, the
 * watchdog handles that.
 */
export function tellDepth(hold: Hold, deps: KernelParts): void {
  const isTold = hold.mode === 'read' || hold.depth === hold.storeLease.toldDepth;
  if (hold.isTellingDepth || !hold.checkHeld() || isTold) return;
  hold.isTellingDepth = true;
  void sendDepth(hold, deps, hold.attemptTimeoutMs).then(({ outcome }) => {
    hold.isTellingDepth = false;
    if (outcome === 'answered') tellDepth(hold, deps);
  });
}

export function notOfSemaphore(mode: LockMode): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `Only a semaphore lease has permits to release, not a lease in mode '${mode}'.`,
    'mode',
  );
}

export function tooManyPermits(released: unknown, permits: number): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    permits === 1
      ? 'This lease has one permit. Call release() to release it.'
      : `releasePermits takes an integer from 1 to ${permits - 1}, because this lease has ${permits} permits; not ` +
          `${describeValue(released)}. Call release() to release all of them.`,
    'permits',
  );
}

/**
 * One at a time: see {@link Hold.change}. The command has the number of permits left, so it releases none twice,
 * however often it is executed. If it fails, it is sent again in the background. A repeated call of the user then has
 * the same number, because the lease counts on all its permits until a call is answered, unless that would harm others.
 */
export async function releasePermits(hold: Hold, deps: KernelParts, released: number): Promise<boolean> {
  const { storeLease, owner } = hold;
  const { permits, permitsLeft } = storeLease;
  // A command without an answer may still be executed, and leave fewer than this one would.
  const left = Math.min(permits!.count - released, permitsLeft ?? Infinity);
  const send = () => deps.store.lowerPermits(owner, left);
  storeLease.permitsLeft = left;
  try {
    const isOwner = await askFor(hold, deps, send, 'release permits of');
    if (isOwner) storeLease.permits = { ...permits!, count: left };
    else storeLease.takenOver();
    storeLease.permitsLeft = undefined;
    return isOwner;
  } catch (error) {
    // Otherwise it was sent in the background already.
    if (left !== permitsLeft) untilAnswered(hold, deps, () => (storeLease.permitsLeft === left ? send() : undefined));
    throw error;
  }
}
