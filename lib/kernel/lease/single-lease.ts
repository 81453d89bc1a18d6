import { inspect, type InspectOptions } from 'node:util';
import { currentContext } from '../util/async-contexts.js';
import { InvalidLockOptionsError, LockUnavailableError } from '../api/errors.js';
import { LeaseLostError, LockReentryError } from '../api/lease-errors.js';
import type { Hold } from '../holding/hold.js';
import type { KernelParts } from './kernel-parts.js';
import {
  askFor,
  downgrade,
  extend,
  notOfSemaphore,
  releasePermits,
  tellDepth,
  tooManyPermits,
  withGroup,
} from './changes.js';
import { showCaller } from '../acquiring/failed-calls.js';
import { checkLeaseLimit, LEASE_LENGTH, type LockMode } from '../api/lock-options.js';
import type { Lease } from '../api/lease.js';
import { notAmong } from '../api/resource.js';
import { retryUnexecuted, type Settled } from '../store/ask.js';
import { isAbortedBy } from '../util/signals.js';
import { escapeUnsafe } from '../util/quoted.js';

/** A release that has ended without a command, so no call waits for it. */
export const OVER = Promise.resolve();
const HANDED_OVER = { outcome: 'answered', value: true } as const;

export abstract class BaseLease {
  abstract readonly fencingToken: number;
  abstract readonly holds: readonly Hold[];
  abstract readonly signal: AbortSignal;
  abstract isHeld(): boolean;
  /** Releases it, in any async context. */
  abstract end(): Promise<void>;

  /** @throws LeaseLostError if the lease was lost before its work finished with this result */
  checkNotLost(result: unknown): void {
    if (this.isHeld()) return;
    // The work may have released the lease itself: that is no loss.
    for (const { loss } of this.holds) if (loss) throw LeaseLostError.afterWork(loss, result);
  }

  /** Returns the error of work that has failed: its own, or why the signal of the lease has aborted. */
  errorOfWork(error: unknown): unknown {
    const { signal } = this;
    if (!isAbortedBy(signal, error)) return error;
    // A renewal or a timer has created the loss.
    if (signal.reason instanceof LeaseLostError) showCaller(signal.reason);
    return signal.reason;
  }

  // For logs. It never shows the owner id, which is a secret.

  /** One token, or one for each of several resources. Never throws. */
  protected get printedToken(): object {
    return { fencingToken: this.fencingToken };
  }

  [Symbol.asyncDispose](): Promise<void> {
    const ended = this.end();
    return ended === OVER ? OVER : ended.catch(() => {});
  }

  toJSON(this: Lease & BaseLease) {
    const { resource, mode, permits, printedToken } = this;
    return {
      resource,
      mode,
      ...(permits && { permits }),
      ...printedToken,
      isHeld: this.isHeld(),
      remainingMs: Math.round(this.remainingMs()),
    };
  }

  [inspect.custom](this: Lease & BaseLease, _depth: number, options: InspectOptions): string {
    return `Lease ${escapeUnsafe(inspect(this.toJSON(), options))}`;
  }
}

export class SingleLease extends BaseLease implements Lease {
  #ending: Promise<void> | undefined;
  #isBound = false;
  #mode: LockMode;

  constructor(
    readonly hold: Hold,
    readonly deps: KernelParts,
    mode: LockMode = hold.mode,
  ) {
    super();
    this.#mode = mode;
  }

  get resource() {
    return this.hold.owner.resource;
  }

  get resources() {
    return [this.resource];
  }

  get mode() {
    return this.#mode;
  }

  get fencingToken() {
    return this.hold.fencingToken;
  }

  get permits(): number | undefined {
    return this.hold.storeLease.permits?.count;
  }

  /** The name of the counter that numbers the leases of its resource. */
  get fence(): string {
    return this.deps.store.fenceOf(this.resource);
  }

  fencingTokenOf(resource: string): number {
    if (resource !== this.resource) throw notAmong(this.resources, resource);
    return this.fencingToken;
  }

  get signal(): AbortSignal {
    this.deps.leaks.untrack(this.hold);
    return this.hold.signal;
  }

  get holds() {
    return [this.hold];
  }

  get isReleased(): boolean {
    return this.#ending !== undefined;
  }

  isHeld(): boolean {
    return this.#ending === undefined && this.hold.checkHeld();
  }

  remainingMs(): number {
    return this.isHeld() ? this.hold.remainingMs() : 0;
  }

  assertHeld(): void {
    if (!this.isHeld()) throw this.hold.lossError();
  }

  async verify(): Promise<boolean> {
    if (!this.isHeld()) return false;
    const { hold, deps } = this;
    const isOwner = await askFor(hold, deps, () => deps.store.verify(hold.owner), 'verify');
    // All holders of this process have lost it.
    if (!isOwner) hold.storeLease.takenOver();
    return this.isHeld();
  }

  async extend(leaseMs: number = this.hold.leaseMs): Promise<void> {
    LEASE_LENGTH.check('leaseMs', leaseMs);
    checkLeaseLimit(leaseMs, this.deps.defaults.restartQuarantineMs);
    this.assertHeld();
    const { hold, deps } = this;
    if (!deps.observation.followsRenewals) await extend(hold, deps, leaseMs);
    else
      await deps.observation.renewal(hold.followed, 'extend', () =>
        extend(hold, deps, leaseMs).then(() => hold.checkHeld()),
      );
    this.assertHeld();
  }

  checkMayDowngrade(): void {
    this.assertHeld();
    if (this.#mode === 'write') {
      if (this.hold.writers > 1) throw LockReentryError.sharedByOthers(this.resource);
    } else if (this.#mode !== 'read') {
      throw new InvalidLockOptionsError(
        `Only a lease in mode 'write' can be downgraded, not one in mode '${this.#mode}'.`,
        'mode',
      );
    }
  }

  async downgrade(): Promise<void> {
    this.checkMayDowngrade();
    const { hold, resource } = this;
    if (this.#mode === 'write') {
      this.#mode = 'read';
      hold.writers--;
    }
    // An outer entry still writes, or Redis has the lock in mode `read` already.
    if (hold.writers > 0 || hold.storeLease.isReadLock) return;
    const answer = await downgrade(hold, this.deps);
    if (answer.outcome === 'timeout' || answer.outcome === 'failed') {
      throw withGroup(new LockUnavailableError(resource, 'downgrade', answer.outcome, answer.error), hold, this.deps);
    }
    this.assertHeld();
  }

  async releasePermits(count: number): Promise<void> {
    this.checkMayRelease(count);
    const isOwner = await this.hold.inOrder(() => {
      // An earlier command may have ended the lease, or left it fewer permits.
      this.checkMayRelease(count);
      return releasePermits(this.hold, this.deps, count);
    });
    if (!isOwner) throw this.hold.lossError();
  }

  private checkMayRelease(count: number): void {
    const { permits } = this;
    if (permits === undefined) throw notOfSemaphore(this.mode);
    this.assertHeld();
    if (!Number.isInteger(count) || count < 1 || count >= permits) throw tooManyPermits(count, permits);
    const { storeLease } = this.hold;
    if (!storeLease.retention()) return;
    throw new InvalidLockOptionsError(
      `This lease keeps all its permits until its minHoldMs (${storeLease.minHoldMs}) has ended. Call releasePermits ` +
        'later, or acquire the permits in two leases.',
      'minHoldMs',
    );
  }

  release(): Promise<void> {
    if (this.#ending) return ended(this.#ending);
    if (this.#isBound && this.mode === 'reentrant' && !this.deps.context.has(this.hold)) {
      return Promise.reject(LockReentryError.foreignRelease(this.resource));
    }
    return this.end();
  }

  /** Binds the lease to the running async context: the listeners of its signal see it as the current one. */
  bind(): this {
    this.#isBound = true;
    const { hold, deps } = this;
    if (hold.depth === 1) {
      hold.context = currentContext();
      hold.warnAfter(deps.defaults.warnAfterMs);
    }
    if (!hold.checkHeld()) return this;
    deps.active.add(hold);
    if (hold.warnAt < hold.dueAt) deps.watchdog.watch(hold);
    return this;
  }

  end(): Promise<void> {
    if (this.#ending) return ended(this.#ending);
    // Set first, because an observer or a listener of the signal may call this again before leave() returns.
    this.#ending = OVER;
    return (this.#ending = this.leave());
  }

  private leave(): Promise<void> {
    const { hold, deps } = this;
    // Nearly never: only a lease that the user has to release is tracked.
    if (hold.origin !== undefined) deps.leaks.untrack(hold);
    hold.depth--;
    if (this.#mode === 'write') hold.writers--;
    if (hold.depth === 0) return releaseHold(hold, deps);
    return releaseEntry(hold, deps);
  }
}

/** A further call only waits for the first one, which reports what went wrong. */
function ended(ending: Promise<void>): Promise<void> {
  return ending === OVER ? OVER : ending.catch(() => {});
}

/**
 * Ends the last lease on a hold: the lock is handed over to the next call of this process, or released in the store.
 * `StoreLease.releasedBy` may replace the command: a job's lock ends with its run.
 */
function releaseHold(hold: Hold, deps: KernelParts): Promise<void> {
  const ended = releaseAll(hold, deps);
  if (!hold.options.backgroundRelease) return ended;
  ended.catch(() => {}); // the observers know
  return OVER;
}

function releaseAll(hold: Hold, deps: KernelParts): Promise<void> {
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
async function releaseEntry(hold: Hold, deps: KernelParts): Promise<void> {
  // Only readers are left: the last writing entry has ended.
  if (hold.mode === 'write' && hold.writers === 0 && hold.checkHeld()) return void (await downgrade(hold, deps));
  tellDepth(hold, deps);
}

function conclude(hold: Hold, deps: KernelParts, answer: Settled<boolean>, wasHeld: boolean, heldMs: number): void {
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
