import { aborted, unavailable, waitedTooLong } from './acquire-errors.js';
import type { Call } from './call.js';
import { Contender, type ContenderListener, type ContenderWorkings } from './contender.js';
import { LockQueueFullError, LockShutdownError } from './errors.js';
import type { Hold } from './hold.js';
import type { Ownership, PushedGrant } from './lock-store.js';
import { createOwnerId } from './owner-id.js';
import { Tenure } from './tenure.js';
import { WaitingCalls } from './waiting-calls.js';

export interface LineWorkings extends ContenderWorkings {
  /** Aborts when the application shuts down. */
  readonly closing: AbortSignal;
}

/**
 * The calls of this process that want one resource, first come, first served. Either the resource is held here and the calls
 * wait for its release, or one contender asks the store for the first of them: a thousand local waiters cost Redis no more
 * than one.
 */
export class Line implements ContenderListener {
  /** Those who wait, but for the one that the contender asks for. */
  readonly #waiting = new WaitingCalls();
  #contender: Contender | undefined;
  #tenure: Tenure | undefined;

  constructor(
    readonly resource: string,
    private readonly workings: LineWorkings,
    /** It leaves them when nobody holds the resource here and nobody wants it. */
    private readonly lines: Map<string, Line>,
  ) {}

  /** The call waits its turn, or the store is asked at once. */
  join(call: Call): void {
    const { maxWaiters, signal } = call.options;
    const isTaken = this.#tenure !== undefined || this.#contender !== undefined;
    if (isTaken && this.#size >= maxWaiters) {
      this.#findOut(call);
      call.fail(new LockQueueFullError(this.resource, maxWaiters, 'process', call.log.holderTtlMs));
      return;
    }
    if (signal) call.onAbort(() => this.#dismiss(call, aborted(this.resource, this.workings.closing, signal)));
    if (!isTaken) return this.#contend(call).ask();
    this.#waiting.add(call);
    call.onGivingUp(() => this.#outOfTime(call));
  }

  /** Whether a call waits for its turn, here or in the queue of the store. */
  get isWaitedFor(): boolean {
    return this.#size > 0;
  }

  /** Whether the hold stands on what this line was granted. */
  isTenureOf({ tenure }: Hold): boolean {
    return this.#tenure === tenure;
  }

  /**
   * The holder releases: the next call gets the lease in memory, or the store is told, together with the wish of the next
   * call if there is one. Gives whether the lock was still held, where the store was asked.
   */
  passOn(hold: Hold, onPassed: () => void): Promise<boolean> | undefined {
    const { ownership, tenure, backgroundRelease } = hold;
    const first = this.#waiting.first;
    if (first && tenure.mayPassTo(first.options)) {
      onPassed();
      this.#handOver(hold);
      return undefined;
    }
    this.#tenure = undefined;
    const next = this.#waiting.next();
    if (next) return this.#contend(next).askInPlaceOf(ownership);
    this.#checkIdle();
    return this.workings.store.release(ownership, backgroundRelease);
  }

  /** In memory; unless those who waited have given up in the moment they heard of the release. */
  #handOver(hold: Hold): void {
    const { tenure } = hold;
    const heir = this.#waiting.next();
    if (heir && tenure.mayPassTo(heir.options)) {
      tenure.passOn();
      return this.#grant(heir, tenure);
    }
    this.#tenure = undefined;
    this.workings.withdrawals.start(hold.ownership, hold);
    if (heir) this.#contend(heir).ask();
    else this.#checkIdle();
  }

  /** The holder has lost the lock. */
  lost(): void {
    this.#tenure = undefined;
    this.#goOn();
  }

  /** Whether a grant is for somebody in this line. */
  hear({ owner, fencingToken, sentAt }: PushedGrant): boolean {
    if (this.#contender?.ownership.owner === owner) {
      this.#contender.hear(fencingToken, sentAt);
      return true;
    }
    return this.#tenure?.ownership.owner === owner;
  }

  holds(ownership: Ownership): boolean {
    return this.#tenure?.ownership === ownership;
  }

  /** Grants may have been missed. */
  askNow(): void {
    this.#contender?.ask();
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

  granted(fencingToken: number, sentAt: number): void {
    const { call, ownership } = this.#contender!;
    this.#contender = undefined;
    this.#grant(call, new Tenure(ownership, fencingToken, sentAt, call.options, this.workings.clock));
  }

  outOfTime(): void {
    this.#outOfTime(this.#contender!.call);
  }

  full(): void {
    const { call } = this.#contender!;
    const { maxWaiters } = call.options;
    this.#dismissFirst(call, new LockQueueFullError(this.resource, maxWaiters, 'redis', call.log.holderTtlMs));
  }

  refused(): void {
    const { call } = this.#contender!;
    this.#dismissFirst(call, unavailable(this.resource, call.log));
  }

  /** How many wait. */
  get #size(): number {
    return this.#waiting.size + (this.#contender ? 1 : 0);
  }

  #contend(call: Call): Contender {
    const { store, random } = this.workings;
    const ownership: Ownership = {
      resource: this.resource,
      owner: createOwnerId(store.clientId, random),
      mode: call.options.mode,
    };
    call.stopWatching();
    return (this.#contender = new Contender(ownership, call, this, this.workings));
  }

  #grant(call: Call, tenure: Tenure): void {
    this.#tenure = tenure;
    call.grant(tenure, this.workings.clock.now());
  }

  #outOfTime(call: Call): void {
    if (call !== this.#contender?.call) this.#findOut(call);
    this.#dismiss(call, waitedTooLong(this.resource, call.waitedMs(this.workings.clock.now()), call.log));
  }

  /** Whom a call waits for that has not asked by itself. */
  #findOut({ log }: Call): void {
    if (this.#tenure) log.busy(Math.max(0, this.#tenure.deadline - this.workings.clock.now()));
    else if (this.#contender) log.inherit(this.#contender.call.log);
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

  /** The next one's turn to ask the store. */
  #goOn(): void {
    const next = this.#waiting.next();
    if (next) this.#contend(next).ask();
    else this.#checkIdle();
  }

  #checkIdle(): void {
    if (!this.#tenure && this.#size === 0) this.lines.delete(this.resource);
  }
}
