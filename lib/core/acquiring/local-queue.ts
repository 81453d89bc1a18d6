import { aborted, mismatched, unavailable, waitedTooLong } from './acquire-errors.js';
import { AttemptLog } from '../store/attempts.js';
import type { Call } from './pending-call.js';
import { Contender, type ContenderListener, type ContenderWorkings } from './store-waiter.js';
import { LockQueueFullError, LockShutdownError } from '../api/errors.js';
import type { Hold } from '../holding/hold.js';
import { type FoundInUse, LockStoreError, type Ownership, type PushedGrant } from '../store/lock-store.js';
import { createContender } from '../store/owner-id.js';
import { LocalTenures } from './local-tenures.js';
import { Tenure } from '../holding/store-lease.js';
import { WaitingCalls } from './waiting-calls.js';

export interface LineWorkings extends ContenderWorkings {
  /** Aborts when the application shuts down. */
  readonly closing: AbortSignal;
}

/**
 * The calls of this process that want one resource, first come, first served. Either the resource is held here and the calls
 * wait for its release, or one contender asks the store for the first of them: a thousand local waiters cost Redis no more
 * than one. Where the resource can be shared, the contender asks while leases of this process hold it as well, and readers
 * read beside one another.
 */
export class Line implements ContenderListener {
  readonly log = new AttemptLog();
  /** Those who wait, but for the one that the contender asks for. */
  readonly #waiting = new WaitingCalls();
  #contender: Contender | undefined;
  readonly #tenures = new LocalTenures();

  constructor(
    readonly resource: string,
    private readonly workings: LineWorkings,
    /** It leaves them when nobody holds the resource here and nobody wants it. */
    private readonly lines: Map<string, Line>,
  ) {}

  /** The call is granted, waits its turn, or the store is asked at once. */
  join(call: Call): void {
    const { maxWaiters, signal } = call.options;
    const tenure = this.#size === 0 ? this.#tenures.sharableWith(call.options) : undefined;
    if (tenure) return this.#enter(tenure, call);
    const isFirst = this.#mayContend(call);
    if (!isFirst && this.#size >= maxWaiters) {
      return call.fail(this.#fullHere(call));
    }
    if (signal) call.onAbort(() => this.#dismiss(call, aborted(this.resource, this.workings.closing, signal)));
    if (isFirst) return this.#contend(call).ask(call.startedAt);
    this.#waiting.add(call);
    call.onGivingUp(() => this.#outOfTime(call));
  }

  /** The first call that waits for its turn, here or in the queue of the store. */
  get firstWaiting(): Call | undefined {
    return this.#contender?.call ?? this.#waiting.first;
  }

  /** Whether the hold stands on what this line was granted. */
  isTenureOf({ tenure }: Hold): boolean {
    return this.#tenures.has(tenure);
  }

  /**
   * The holder releases: the next call gets the lease in memory, or the store is told, together with the wish of the next
   * call if there is one. Gives whether the lock was still held, where the store was asked.
   */
  passOn(hold: Hold, onPassed: () => void): Promise<boolean> | undefined {
    const { ownership, tenure, backgroundRelease } = hold;
    if (tenure.leave(hold)) {
      onPassed();
      return undefined;
    }
    if (this.#heirOf(tenure)) {
      onPassed();
      this.#handOver(hold);
      return undefined;
    }
    this.#tenures.delete(tenure);
    const next = this.#contender ? undefined : this.#waiting.next();
    if (next) return this.#contend(next).askInPlaceOf(ownership);
    this.#checkIdle();
    return this.workings.store.release(ownership, backgroundRelease);
  }

  /** The call that gets what the tenure holds when it ends now. Whoever is first; and the next one takes its place in the store. */
  #heirOf(tenure: Tenure, now?: number): Call | undefined {
    const contender = this.#contender;
    const next = this.#waiting.first;
    const first = contender?.call ?? next;
    if (!first || !next || tenure.mode === 'read' || !tenure.mayPassTo(first.options, now)) return undefined;
    return contender && !contender.suits(next) ? undefined : first;
  }

  /** In memory; unless those who waited have given up in the moment they heard of the release. */
  #handOver(hold: Hold): void {
    const { tenure } = hold;
    const now = this.workings.clock.now();
    const heir = this.#heirOf(tenure, now);
    if (heir) {
      const next = this.#waiting.next()!;
      this.#contender?.passTo(next);
      return this.#enter(tenure, heir, now);
    }
    this.#tenures.delete(tenure);
    this.workings.withdrawals.start(hold.ownership, hold);
    this.#goOn();
  }

  /** A holder has lost the lock. */
  lost(hold: Hold): void {
    const { tenure } = hold;
    if (tenure.isUnconfirmed && hold.lossError().reason === 'notRenewed') {
      this.log.unanswered(new LockStoreError('unknown', 'no renewal of the lease before was confirmed in time'));
    }
    this.#tenures.delete(tenure);
    this.#goOn();
  }

  /** What a holder had is another process's now. Where it was shared, the tenure stays, for the others or to be released. */
  handedOn(hold: Hold, hasShared: boolean): void {
    if (hold.tenure.leave(hold)) return;
    if (hasShared) this.workings.withdrawals.start(hold.ownership, hold);
    this.lost(hold);
  }

  /** What a writer holds can be shared now. */
  downgraded(): void {
    this.#goOn();
  }

  /** Whether a grant is for the one who asks the store. */
  hear(grant: PushedGrant): boolean {
    const contender = this.#contender;
    if (!contender || !grant.isFor(contender.ownership.owner)) return false;
    contender.hear(grant.fencingToken, grant.sentAt);
    return true;
  }

  holds(ownership: Ownership): boolean {
    return this.#tenures.holds(ownership);
  }

  /** The connection is new: grants may have been missed, and the store may have lost its data. */
  reconnected(): void {
    this.doubt();
    this.#contender?.ask();
  }

  /** What is held here may have been ended in the store: the next call has to ask. */
  doubt(): void {
    this.#tenures.doubt();
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
    const { clock } = this.workings;
    this.#contender = undefined;
    // Whoever waits from now on waits for this holder.
    this.log.busy(0);
    const tenure = new Tenure(ownership, fencingToken, sentAt, call.options, clock, now);
    tenure.mayComeBack = hasAskedAgain;
    this.#tenures.add(tenure);
    call.grant(tenure, now);
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

  #contend(call: Call): Contender {
    const ownership = createContender(this.resource, call.options, this.workings);
    call.stopWatching();
    return (this.#contender = new Contender(ownership, call, this, this.workings));
  }

  /** A call reads beside those that do already, or follows the one that ended, without a word to the store. */
  #enter(tenure: Tenure, call: Call, now = this.workings.clock.now()): void {
    tenure.passOn();
    call.grant(tenure, now);
  }

  /** Whether the store can be asked for this call now, if it is the first one. */
  #mayContend({ options }: Call): boolean {
    return !this.#contender && !this.#tenures.excludes(options);
  }

  #outOfTime(call: Call): void {
    this.#findOut(call);
    const waitedMs = call.waitedMs(this.workings.clock.now());
    this.#dismiss(call, waitedTooLong(this.resource, waitedMs, this.log, call.attempts));
  }

  /** One call more than may wait: for the holder, or for a Redis that is away. */
  #fullHere(call: Call): Error {
    this.#findOut(call, false);
    if (this.log.lastError) return unavailable(this.resource, this.log);
    return new LockQueueFullError(this.resource, call.options.maxWaiters, 'process', this.log.holderTtlMs);
  }

  /** What is known at this moment without asking: a holder of this process has what it has, whatever became of Redis. */
  #findOut({ options }: Call, hasEnded = true): void {
    const { clock, store } = this.workings;
    const { first: tenure } = this.#tenures;
    if (tenure && !this.#contender) return this.log.busy(Math.max(0, tenure.deadline - clock.now()));
    this.log.checkSilence(clock.now(), options.attemptTimeoutMs, hasEnded);
    this.log.notice(store.trouble(this.resource));
  }

  /** The call ends ungranted. If the contender asks for it, the next call takes its place, in the store's queue too. */
  #dismiss(call: Call, error: Error): void {
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
  #dismissFirst(call: Call, error: Error): void {
    this.#contender!.withdraw();
    this.#contender = undefined;
    call.fail(error);
    this.#goOn();
  }

  /** The next one's turn: to read beside the others, or to ask the store. */
  #goOn(): void {
    for (let next = this.#waiting.first; next && !this.#contender; next = this.#waiting.first) {
      // Once: a moment later the tenure may not be open any more.
      const tenure = this.#tenures.sharableWith(next.options);
      if (!tenure && !this.#mayContend(next)) return;
      this.#waiting.delete(next);
      if (tenure) this.#enter(tenure, next);
      else this.#contend(next).ask();
    }
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#tenures.isEmpty && this.#size === 0) this.lines.delete(this.resource);
  }
}
