import { aborted, mismatched, unavailable, waitedTooLong } from './acquire-errors.js';
import { AttemptLog } from '../store/attempts.js';
import { type PendingCall, WaitingCalls } from './pending-call.js';
import { StoreWaiter, type ContenderListener, type StoreWaiterDeps } from './store-waiter.js';
import { LockQueueFullError, LockShutdownError } from '../api/errors.js';
import type { Hold } from '../holding/hold.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import { type FoundInUse, LockStoreError, type LockOwner, type PushedGrant } from '../store/lock-store.js';
import { createContender } from '../store/owner-id.js';
import { StoreLease } from '../holding/store-lease.js';

const NONE: readonly StoreLease[] = [];

export interface LocalQueueDeps extends StoreWaiterDeps {
  /** Aborts when the application shuts down. */
  readonly closing: AbortSignal;
}

/**
 * The calls of this process that want one resource, first come, first served. Either the resource is held here and the calls
 * wait for its release, or one contender asks the store for the first of them: a thousand local waiters cost Redis no more
 * than one. Where the resource can be shared, the contender asks while leases of this process hold it as well, and readers
 * read beside one another.
 */
export class LocalQueue implements ContenderListener {
  readonly log = new AttemptLog();
  /** Those who wait, but for the one that the contender asks for. */
  readonly #waiting = new WaitingCalls();
  #contender: StoreWaiter | undefined;
  readonly #storeLeases = new LocalStoreLeases();

  constructor(
    readonly resource: string,
    private readonly deps: LocalQueueDeps,
    /** It leaves them when nobody holds the resource here and nobody wants it. */
    private readonly lines: Map<string, LocalQueue>,
  ) {}

  /** The call is granted, waits its turn, or the store is asked at once. */
  join(call: PendingCall): void {
    const { maxWaiters, signal } = call.options;
    const storeLease = this.#size === 0 ? this.#storeLeases.sharableWith(call.options) : undefined;
    if (storeLease) return this.#enter(storeLease, call);
    const isFirst = this.#mayContend(call);
    if (!isFirst && this.#size >= maxWaiters) {
      return call.fail(this.#fullHere(call));
    }
    if (signal) call.onAbort(() => this.#dismiss(call, aborted(this.resource, this.deps.closing, signal)));
    if (isFirst) return this.#contend(call).ask(call.startedAt);
    this.#waiting.add(call);
    call.onGivingUp(() => this.#outOfTime(call));
  }

  /** The first call that waits for its turn, here or in the queue of the store. */
  get firstWaiting(): PendingCall | undefined {
    return this.#contender?.call ?? this.#waiting.first;
  }

  /** Whether the hold stands on what this line was granted. */
  isStoreLeaseOf({ storeLease }: Hold): boolean {
    return this.#storeLeases.has(storeLease);
  }

  /**
   * The holder releases: the next call gets the lease in memory, or the store is told, together with the wish of the next
   * call if there is one. Gives whether the lock was still held, where the store was asked.
   */
  passOn(hold: Hold, onPassed: () => void): Promise<boolean> | undefined {
    const { ownership, storeLease, backgroundRelease } = hold;
    if (storeLease.leave(hold)) {
      onPassed();
      return undefined;
    }
    if (this.#heirOf(storeLease)) {
      onPassed();
      this.#handOver(hold);
      return undefined;
    }
    this.#storeLeases.delete(storeLease);
    const next = this.#contender ? undefined : this.#waiting.next();
    if (next) return this.#contend(next).askInPlaceOf(ownership);
    this.#checkIdle();
    return this.deps.store.release(ownership, backgroundRelease);
  }

  /** The call that gets what the store lease holds when it ends now. Whoever is first; and the next one takes its place in the store. */
  #heirOf(storeLease: StoreLease, now?: number): PendingCall | undefined {
    const contender = this.#contender;
    const next = this.#waiting.first;
    const first = contender?.call ?? next;
    if (!first || !next || storeLease.mode === 'read' || !storeLease.mayPassTo(first.options, now)) return undefined;
    return contender && !contender.suits(next) ? undefined : first;
  }

  /** In memory; unless those who waited have given up in the moment they heard of the release. */
  #handOver(hold: Hold): void {
    const { storeLease } = hold;
    const now = this.deps.clock.now();
    const heir = this.#heirOf(storeLease, now);
    if (heir) {
      const next = this.#waiting.next()!;
      this.#contender?.passTo(next);
      return this.#enter(storeLease, heir, now);
    }
    this.#storeLeases.delete(storeLease);
    this.deps.orphanReleases.start(hold.ownership, hold);
    this.#goOn();
  }

  /** A holder has lost the lock. */
  lost(hold: Hold): void {
    const { storeLease } = hold;
    if (storeLease.isUnconfirmed && hold.lossError().reason === 'notRenewed') {
      this.log.unanswered(new LockStoreError('unknown', 'no renewal of the lease before was confirmed in time'));
    }
    this.#storeLeases.delete(storeLease);
    this.#goOn();
  }

  /** What a holder had is another process's now. Where it was shared, the store lease stays, for the others or to be released. */
  handedOn(hold: Hold, hasShared: boolean): void {
    if (hold.storeLease.leave(hold)) return;
    if (hasShared) this.deps.orphanReleases.start(hold.ownership, hold);
    this.lost(hold);
  }

  /** What a writer holds can be shared now. */
  downgraded(): void {
    this.#goOn();
  }

  /** Whether a grant is for the one who asks the store. */
  hear(grant: PushedGrant): boolean {
    const contender = this.#contender;
    if (!contender || !grant.isFor(contender.ownership.id)) return false;
    contender.hear(grant.fencingToken, grant.sentAt);
    return true;
  }

  holds(ownership: LockOwner): boolean {
    return this.#storeLeases.holds(ownership);
  }

  /** The connection is new: grants may have been missed, and the store may have lost its data. */
  reconnected(): void {
    this.doubt();
    this.#contender?.ask();
  }

  /** What is held here may have been ended in the store: the next call has to ask. */
  doubt(): void {
    this.#storeLeases.doubt();
  }

  /** The application shuts down: nobody waits any more. */
  close(): void {
    const first = this.#contender;
    first?.withdraw();
    this.#contender = undefined;
    for (const call of [...(first ? [first.call] : []), ...this.#waiting.clear()]) {
      call.fail(new LockShutdownError(this.resource));
    }
    this.#checkIdle();
  }

  granted(fencingToken: number, sentAt: number, now: number): void {
    const { call, ownership, hasAskedAgain } = this.#contender!;
    const { clock } = this.deps;
    this.#contender = undefined;
    // Whoever waits from now on waits for this holder.
    this.log.busy(0);
    const storeLease = new StoreLease(ownership, fencingToken, sentAt, call.options, clock, now);
    storeLease.mayComeBack = hasAskedAgain;
    this.#storeLeases.add(storeLease);
    call.grant(storeLease, now);
    this.#goOn();
  }

  outOfTime(): void {
    this.#outOfTime(this.#contender!.call);
  }

  full(): void {
    const { call } = this.#contender!;
    const { maxWaiters } = call.options;
    this.#dismissFirst(call, new LockQueueFullError(this.resource, maxWaiters, 'redis', this.log.holderTtlMs));
  }

  mismatched(found: FoundInUse): void {
    const { call } = this.#contender!;
    this.#dismissFirst(call, mismatched(this.resource, call.options, found));
  }

  refused(): void {
    const { call } = this.#contender!;
    this.#dismissFirst(call, unavailable(this.resource, this.log));
  }

  /** How many wait. */
  get #size(): number {
    return this.#waiting.size + (this.#contender ? 1 : 0);
  }

  #contend(call: PendingCall): StoreWaiter {
    const ownership = createContender(this.resource, call.options, this.deps);
    call.stopWatching();
    return (this.#contender = new StoreWaiter(ownership, call, this, this.deps));
  }

  /** A call reads beside those that do already, or follows the one that ended, without a word to the store. */
  #enter(storeLease: StoreLease, call: PendingCall, now = this.deps.clock.now()): void {
    storeLease.passOn();
    call.grant(storeLease, now);
  }

  /** Whether the store can be asked for this call now, if it is the first one. */
  #mayContend({ options }: PendingCall): boolean {
    return !this.#contender && !this.#storeLeases.excludes(options);
  }

  #outOfTime(call: PendingCall): void {
    this.#findOut(call);
    const waitedMs = call.waitedMs(this.deps.clock.now());
    this.#dismiss(call, waitedTooLong(this.resource, waitedMs, this.log, call.attempts));
  }

  /** One call more than may wait: for the holder, or for a Redis that is away. */
  #fullHere(call: PendingCall): Error {
    this.#findOut(call, false);
    if (this.log.lastError) return unavailable(this.resource, this.log);
    return new LockQueueFullError(this.resource, call.options.maxWaiters, 'process', this.log.holderTtlMs);
  }

  /** What is known at this moment without asking: a holder of this process has what it has, whatever became of Redis. */
  #findOut({ options }: PendingCall, hasEnded = true): void {
    const { clock, store } = this.deps;
    const { first: storeLease } = this.#storeLeases;
    if (storeLease && !this.#contender) return this.log.busy(Math.max(0, storeLease.deadline - clock.now()));
    this.log.checkSilence(clock.now(), options.attemptTimeoutMs, hasEnded);
    this.log.notice(store.trouble(this.resource));
  }

  /** The call ends ungranted. If the contender asks for it, the next call takes its place, in the store's queue too. */
  #dismiss(call: PendingCall, error: Error): void {
    const contender = this.#contender;
    if (contender?.call !== call) {
      this.#waiting.delete(call);
      call.fail(error);
      return;
    }
    const heir = this.#waiting.first;
    if (!heir || !contender.suits(heir)) return this.#dismissFirst(call, error);
    this.#waiting.delete(heir);
    contender.passTo(heir);
    call.fail(error);
  }

  /** The call ends ungranted, and its contender with it. */
  #dismissFirst(call: PendingCall, error: Error): void {
    this.#contender!.withdraw();
    this.#contender = undefined;
    call.fail(error);
    this.#goOn();
  }

  /** The next one's turn: to read beside the others, or to ask the store. */
  #goOn(): void {
    for (let next = this.#waiting.first; next && !this.#contender; next = this.#waiting.first) {
      // Once: a moment later the store lease may not be open any more.
      const storeLease = this.#storeLeases.sharableWith(next.options);
      if (!storeLease && !this.#mayContend(next)) return;
      this.#waiting.delete(next);
      if (storeLease) this.#enter(storeLease, next);
      else this.#contend(next).ask();
    }
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#storeLeases.isEmpty && this.#size === 0) this.lines.delete(this.resource);
  }
}

/** What this process holds of one resource, through its line: one store lease, or several of what can be shared. */
class LocalStoreLeases {
  #storeLeases: readonly StoreLease[] = NONE;

  get isEmpty(): boolean {
    return this.#storeLeases.length === 0;
  }

  /** The one that it has held longest. */
  get first(): StoreLease | undefined {
    return this.#storeLeases[0];
  }

  add(storeLease: StoreLease): void {
    this.#storeLeases = this.isEmpty ? [storeLease] : [...this.#storeLeases, storeLease];
  }

  delete(storeLease: StoreLease): void {
    const isOnly = this.#storeLeases.length === 1 && this.first === storeLease;
    this.#storeLeases = isOnly ? NONE : this.#storeLeases.filter((other) => other !== storeLease);
  }

  /** The store may have forgotten them. */
  doubt(): void {
    for (const storeLease of this.#storeLeases) storeLease.isInDoubt = true;
  }

  has(storeLease: StoreLease): boolean {
    return this.#storeLeases.includes(storeLease);
  }

  holds(ownership: LockOwner): boolean {
    return this.#storeLeases.some((storeLease) => storeLease.ownership === ownership);
  }

  /** One that a reader may read beside, without a word to the store. */
  sharableWith(options: ResolvedLockOptions): StoreLease | undefined {
    return this.#storeLeases.find((storeLease) => storeLease.mayShareWith(options));
  }

  /** Whether nothing can be granted on these terms before this process releases. */
  excludes({ mode }: ResolvedLockOptions): boolean {
    // Who takes a lock for a semaphore is told so by the store, and at once.
    return mode !== 'semaphore' && this.#storeLeases.some((storeLease) => !storeLease.isShared);
  }
}
