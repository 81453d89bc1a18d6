import { lastingController } from '../util/signals.js';
import { type AsyncContext, currentContext } from '../util/async-contexts.js';
import type { Clock } from '../util/clock.js';
import { explainNotRenewed, LEAKED, LeaseLostError, type LeaseLossReason } from '../api/lease-errors.js';
import type { LockAbortedError } from '../api/errors.js';
import type { LockMode, ResolvedLockOptions } from '../api/lock-options.js';
import type { Origin } from '../util/call-site.js';
import type { LockOwner } from '../store/lock-store.js';
import type { Traces } from '../tracing/followers.js';
import { type LocalHolder, type StoreLease, leaseFor, validUntil } from './store-lease.js';

/** Receives losses, with their possible causes. One for all holds of a client. */
export interface LossListener {
  lost(hold: Hold, error: LeaseLostError): void;
  /** Returns the longest time for which the event loop was blocked since then. */
  blockedMs(since: number): number;
}

export interface Grant {
  readonly storeLease: StoreLease;
  readonly attempts: number;
  readonly waitedMs: number;
  /** `true` if observers were notified that the call waits. @default false */
  hasWaited?: boolean;
  /** When this process learned of it, on the monotonic clock. @default now */
  readonly grantedAt?: number;
}

/**
 * One lock that a caller in this process holds, from its acquisition to its release or loss. A reentrant holder has one
 * lease on it for each time it has entered.
 *
 * A process may have thousands. So what few of them need is only set then, and methods are `private`: one with a `#` takes
 * a word in each object, as a field does.
 */
export class Hold implements LocalHolder {
  renewable: boolean;
  /** Only set once it is released. A number with a fraction, or one that is infinite, takes 16 more bytes in each hold. */
  endedAt: number | undefined = undefined;
  depth = 1;
  /** The number of leases that may write. Only set in mode `write`. */
  declare writers: number;
  dueAt = 0;
  heapIndex = -1;
  /** Its index in the list of active holds; -1 while it is not there. Maintained by that list. */
  activeIndex = -1;
  /** The async context in which the listeners of its signal run. */
  context: AsyncContext | undefined;
  /** For leak detection: the user's object, and its origin. */
  handle: object | undefined;
  origin: Origin | undefined;
  /** As text, once leak detection watches it. */
  callSite: string | undefined = undefined;
  declare isLeaked?: true;
  /** The hold time after which observers are warned; 0 for never, or if they were warned. */
  #warnAfterMs: number;

  declare followed?: Traces | undefined;
  /** Set once a newer call has asked it to stop. */
  declare stopped?: { readonly at: number; readonly error: LockAbortedError };
  declare private isRenewedNoMore?: true;
  /** The end of its `maxHoldMs`, if it has one. */
  declare private endsAt?: number | undefined;
  #state: 'held' | 'released' | 'lost' = 'held';
  declare private lostBy?: LeaseLostError;
  declare private controller?: AbortController;
  /** Commands of one hold that could not be executed in another order. */
  declare private lastInOrder?: Promise<unknown>;
  /** `true` while a command with its depth is under way. Only set after a re-entry. */
  declare isTellingDepth?: boolean;
  /** The leases that its store lease had before it. */
  readonly #handOvers: number;
  /** Not set if it began with its store lease. */
  readonly #acquiredAt: number | undefined;

  constructor(
    readonly storeLease: StoreLease,
    readonly options: ResolvedLockOptions,
    private readonly losses: LossListener,
    context = currentContext(),
    acquiredAt = storeLease.clock.now(),
  ) {
    this.context = context;
    storeLease.addHolder(this);
    if (storeLease.mode === 'write') this.writers = 1;
    this.#handOvers = storeLease.handOvers;
    this.renewable = options.watchdog;
    this.#acquiredAt = acquiredAt === storeLease.beganAt ? undefined : acquiredAt;
    this.#warnAfterMs = finite(options.warnAfterMs);
    if (options.maxHoldMs !== Infinity) this.endsAt = acquiredAt + options.maxHoldMs;
  }

  get acquiredAt(): number {
    return this.#acquiredAt ?? this.storeLease.beganAt;
  }

  private get clock(): Clock {
    return this.storeLease.clock;
  }

  get fencingToken(): number {
    return this.storeLease.tokenAfter(this.#handOvers);
  }

  get label(): string | undefined {
    return this.options.label;
  }

  get owner(): LockOwner {
    return this.storeLease.owner;
  }

  get attemptTimeoutMs(): number {
    return this.options.attemptTimeoutMs;
  }

  get mode(): LockMode {
    return this.storeLease.mode;
  }

  get leaseMs(): number {
    return this.storeLease.leaseMs;
  }

  /** The monotonic time after which another process may hold the lock. */
  get deadline(): number {
    const { deadline } = this.storeLease;
    return this.endsAt === undefined ? deadline : Math.min(deadline, this.endsAt);
  }

  get warnAt(): number {
    return this.#warnAfterMs === 0 ? Infinity : this.acquiredAt + this.#warnAfterMs;
  }

  /** Work runs under it, which should end soon. @param warnAfterMs used if its call sets none */
  warnAfter(warnAfterMs: number): void {
    if (this.options.warnAfterMs === undefined) this.#warnAfterMs = finite(warnAfterMs);
  }

  warned(): void {
    this.#warnAfterMs = 0;
  }

  get isReleased(): boolean {
    return this.#state === 'released';
  }

  /** After the event loop was blocked, the timers are late, and no flag may be trusted. */
  checkHeld(): boolean {
    return this.#state === 'held' && this.checkHeldAt(this.clock.now());
  }

  private checkHeldAt(now: number): boolean {
    if (this.#state !== 'held') return false;
    if (now < this.deadline) return true;
    this.lose(this.reasonAtDeadline());
    return false;
  }

  remainingMs(): number {
    return this.checkHeld() ? Math.max(0, this.deadline - this.clock.now()) : 0;
  }

  /** Returns the length of a renewal sent now, cut so that the store does not keep the lock after `maxHoldMs`. */
  renewalMs(leaseMs = this.leaseMs): number {
    if (this.endsAt === undefined) return Math.max(1, leaseMs);
    return Math.max(1, Math.min(leaseMs, leaseFor(this.endsAt - this.clock.now())));
  }

  get signal(): AbortSignal {
    this.context ??= currentContext();
    this.controller ??= lastingController();
    this.checkHeld();
    if (this.whyToStop && !this.controller.signal.aborted) this.controller.abort(this.whyToStop);
    return this.controller.signal;
  }

  private get whyToStop(): Error | undefined {
    return this.stopped?.error ?? this.lostBy;
  }

  /**
   * Asks the work to stop. The lock is held, and renewed, until the work has ended.
   *
   * @returns `true` only the first time
   */
  askToStop(error: LockAbortedError): boolean {
    if (this.stopped !== undefined || !this.checkHeld()) return false;
    this.stopped = { at: this.clock.now(), error };
    if (this.controller) this.context!.runInAsyncScope(this.abort, this);
    return true;
  }

  /** Marks it as lost, finally. Notifies the listener and aborts the signal once. */
  lose(reason: LeaseLossReason): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    const explained = reason === 'notRenewed' ? this.whyNotRenewed() : undefined;
    this.lostBy = new LeaseLostError(this.owner.resource, reason, this.fencingToken, explained);
    this.losses.lost(this, this.lostBy);
    if (this.controller) this.context!.runInAsyncScope(this.abort, this);
  }

  private abort(): void {
    this.controller!.abort(this.whyToStop);
  }

  /** Drops the data of the caller. Without a signal there is no listener, and a later caller brings its own context. */
  dropContext(): void {
    if (!this.controller) this.context = undefined;
  }

  /** From now on, the hold ends with its current lease, even if other holders of this process renew that lease. */
  renewNoMore(): void {
    this.renewable = false;
    this.isRenewedNoMore = true;
    this.endsAt = this.deadline;
  }

  /**
   * Called when its call has all its resources. The lease was renewed until now; from now on, it lasts as long as the
   * call requested.
   */
  begin({ watchdog, maxHoldMs }: Pick<ResolvedLockOptions, 'watchdog' | 'maxHoldMs'>): void {
    this.renewable = watchdog;
    this.endsAt = maxHoldMs === Infinity ? undefined : this.clock.now() + maxHoldMs;
  }

  /** `true` if renewals have stopped because no caller can release it. */
  get isLeftToEnd(): boolean {
    return this.isRenewedNoMore === true;
  }

  /** The loss of the lease, if another process may have held the lock since. */
  get loss(): LeaseLostError | undefined {
    this.checkHeld();
    // A lease that a shutdown has ended is not renewed any more. Until its deadline, no other process holds the lock.
    const isKept = this.lostBy?.reason === 'shutdown' && this.clock.now() < this.deadline;
    return isKept ? undefined : this.lostBy;
  }

  /** Returns the error of code that needs the lease: the reason for its loss, or that it was released. */
  lossError(): LeaseLostError {
    return this.lostBy ?? new LeaseLostError(this.owner.resource, 'released', this.fencingToken);
  }

  /** Ends it before the store does, so that nothing enters or renews it. @returns `false` if it was lost before */
  end(): boolean {
    const now = this.clock.now();
    this.endedAt = now;
    if (!this.checkHeldAt(now)) return false;
    this.#state = 'released';
    return true;
  }

  /** Runs a command that changes the hold, after those before it: of two in flight, either could arrive first. */
  inOrder<T>(command: () => Promise<T>): Promise<T> {
    const result = this.lastInOrder ? this.lastInOrder.then(command) : command();
    this.lastInOrder = result.catch(() => {});
    return result;
  }

  private whyNotRenewed(): string {
    const { storeLease, leaseMs } = this;
    if (this.isRenewedNoMore) return LEAKED;
    const now = this.clock.now();
    // Unless it had ended when the last confirmed command was sent, to a millisecond.
    const confirmedAt = storeLease.deadline - validUntil(0, leaseMs);
    const blockedMs = this.losses.blockedMs(confirmedAt + 1);
    const { unconfirmedSince: since, trouble } = storeLease;
    const unansweredMs = since === undefined ? undefined : now - since;
    return explainNotRenewed(leaseMs, { blockedMs, unansweredMs, failure: trouble?.cause.message });
  }

  private reasonAtDeadline(): LeaseLossReason {
    if (this.isRenewedNoMore) return 'notRenewed';
    if (this.endsAt !== undefined && this.clock.now() >= this.endsAt) return 'maxHold';
    return this.renewable ? 'notRenewed' : 'expired';
  }
}

function finite(ms = Infinity): number {
  return ms === Infinity ? 0 : ms;
}
