import { lastingController } from '../util/signals.js';
import { type AsyncContext, currentContext } from '../util/async-contexts.js';
import type { Clock } from '../util/clock.js';
import type { Due } from '../util/due-queue.js';
import { LeaseLostError, type LeaseLossReason } from '../api/lease-errors.js';
import type { LockMode, ResolvedLockOptions } from '../api/lock-options.js';
import type { Origin } from '../util/call-site.js';
import type { LockOwner } from '../store/lock-store.js';
import type { StoreLease } from './store-lease.js';
import { leaseFor } from '../store/validity.js';

/** What a call to acquire was granted. */
export interface Grant {
  readonly storeLease: StoreLease;
  readonly attempts: number;
  readonly waitedMs: number;
  /** When that was known, on the monotonic clock. @default now */
  readonly grantedAt?: number;
}

/**
 * One lock held by somebody in this process, from its acquisition to its release or loss. Several leases may stand on it,
 * one for each time a reentrant holder has entered.
 */
export class Hold implements Due {
  readonly fencingToken: number;
  /** Whether the watchdog renews it. */
  renewable: boolean;
  readonly attemptTimeoutMs: number;
  /** Whether nobody waits for the answer to its release. */
  readonly backgroundRelease: boolean;
  readonly acquiredAt: number;
  /** When it ended, on the monotonic clock. */
  endedAt = Infinity;
  /** How many leases stand on it. */
  depth = 1;
  /** How many of them may write. */
  writers: number;
  dueAt = 0;
  heapIndex = -1;
  /** In which the listeners of its signal run, whoever finds that it is lost. */
  context: AsyncContext | undefined;
  /** See {@link Leaks}: what the user has of it, until it is watched; where it was acquired; and whether it is watched. */
  handle: object | undefined;
  origin: Origin | undefined;
  isWatched = false;

  #isRenewedNoMore = false;
  #endsAt: number;
  #state: 'held' | 'released' | 'transferred' | 'lost' = 'held';
  #lossError: LeaseLostError | undefined;
  #controller: AbortController | undefined;
  #onOver: (() => void)[] | undefined;
  /** The depth commands of one hold go one after another: two in flight could arrive in either order. */
  #depthCommands: Promise<unknown> | undefined;

  constructor(
    readonly storeLease: StoreLease,
    options: ResolvedLockOptions,
    readonly clock: Clock,
    private readonly onLost: (hold: Hold, reason: LeaseLossReason) => void,
    context = currentContext(),
    acquiredAt = clock.now(),
  ) {
    this.context = context;
    storeLease.enter(this);
    this.writers = storeLease.mode === 'write' ? 1 : 0;
    this.fencingToken = storeLease.fencingToken;
    this.renewable = options.watchdog;
    this.attemptTimeoutMs = options.attemptTimeoutMs;
    this.backgroundRelease = options.backgroundRelease;
    this.acquiredAt = acquiredAt;
    this.#endsAt = this.acquiredAt + options.maxHoldMs;
  }

  get ownership(): LockOwner {
    return this.storeLease.ownership;
  }

  get mode(): LockMode {
    return this.storeLease.mode;
  }

  get leaseMs(): number {
    return this.storeLease.leaseMs;
  }

  /** The monotonic time after which the lock may be somebody else's. */
  get deadline(): number {
    return Math.min(this.storeLease.deadline, this.#endsAt);
  }

  get isReleased(): boolean {
    return this.#state === 'released';
  }

  /** Compares the deadline itself: after a standstill the timers are late, and no flag may be trusted. */
  isHeld(): boolean {
    return this.#state === 'held' && this.#isHeldAt(this.clock.now());
  }

  #isHeldAt(now: number): boolean {
    if (this.#state !== 'held') return false;
    if (now < this.deadline) return true;
    this.lose(this.#reasonAtDeadline());
    return false;
  }

  remainingMs(): number {
    return this.isHeld() ? Math.max(0, this.deadline - this.clock.now()) : 0;
  }

  /** How long a renewal that is sent now is to last: the store should not keep the lock after `maxHoldMs`. */
  renewalMs(leaseMs = this.leaseMs): number {
    return Math.max(1, Math.min(leaseMs, leaseFor(this.#endsAt - this.clock.now())));
  }

  get signal(): AbortSignal {
    this.context ??= currentContext();
    this.#controller ??= lastingController();
    this.isHeld();
    if (this.#lossError && !this.#controller.signal.aborted) this.#controller.abort(this.#lossError);
    return this.#controller.signal;
  }

  /** Final. Says so once, to the signal and to the listener. */
  lose(reason: LeaseLossReason): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    this.#lossError = new LeaseLostError(this.ownership.resource, reason, this.fencingToken);
    this.onLost(this, reason);
    this.#over();
    if (this.#controller) this.context!.runInAsyncScope(this.#abort, this);
  }

  #abort(): void {
    this.#controller!.abort(this.#lossError);
  }

  /** Keeps no data of the caller: nobody has asked for the signal yet, and whoever does has a context. */
  dropContext(): void {
    if (!this.#controller) this.context = undefined;
  }

  /** From now on it ends when its lease does, also where others of this process renew that. */
  renewNoMore(): void {
    this.renewable = false;
    this.#isRenewedNoMore = true;
    this.#endsAt = this.deadline;
  }

  /** Calls back when it ends, however it does. */
  onOver(callback: () => void): void {
    if (this.#state === 'held') (this.#onOver ??= []).push(callback);
    else callback();
  }

  /** The error to throw where the lease had to be held: why it was lost, or that it was released. */
  lossError(): LeaseLostError {
    const reason = this.#state === 'transferred' ? 'transferred' : 'released';
    return this.#lossError ?? new LeaseLostError(this.ownership.resource, reason, this.fencingToken);
  }

  /** Over, before the store is told: nobody may enter or renew it any more. `false`: it was lost before. */
  end(how: 'released' | 'transferred' = 'released'): boolean {
    const now = this.clock.now();
    this.endedAt = now;
    if (!this.#isHeldAt(now)) return false;
    this.#state = how;
    this.#over();
    return true;
  }

  /** Runs depth commands one after another. */
  inOrder<T>(command: () => Promise<T>): Promise<T> {
    const result = this.#depthCommands ? this.#depthCommands.then(command) : command();
    this.#depthCommands = result.catch(() => {});
    return result;
  }

  #over(): void {
    for (const callback of this.#onOver ?? []) callback();
    this.#onOver = undefined;
  }

  #reasonAtDeadline(): LeaseLossReason {
    if (this.#isRenewedNoMore) return 'notRenewed';
    if (this.clock.now() >= this.#endsAt) return 'maxHold';
    return this.renewable ? 'notRenewed' : 'expired';
  }
}
