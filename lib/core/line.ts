import { aborted, unavailable, waitedTooLong } from './acquire-errors.js';
import type { Call } from './call.js';
import { Contender, type ContenderListener, type ContenderWorkings } from './contender.js';
import { LockQueueFullError, LockShutdownError } from './errors.js';
import type { Hold } from './hold.js';
import type { Ownership, PushedGrant } from './lock-store.js';
import { createOwnerId } from './owner-id.js';
import { Tenure } from './tenure.js';

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
  readonly #calls = new Set<Call>();
  #contender: Contender | undefined;
  #tenure: Tenure | undefined;

  constructor(
    readonly resource: string,
    private readonly workings: LineWorkings,
    /** Nobody holds it here and nobody wants it. */
    private readonly onIdle: (line: Line) => void,
  ) {}

  /** The call waits its turn, or the store is asked at once. */
  join(call: Call): void {
    const { maxWaiters, signal } = call.options;
    const isTaken = this.#tenure !== undefined || this.#contender !== undefined;
    if (isTaken && this.#calls.size >= maxWaiters) {
      this.#findOut(call);
      call.fail(new LockQueueFullError(this.resource, maxWaiters, 'process', call.log.holderTtlMs));
      return;
    }
    this.#calls.add(call);
    if (signal) call.onAbort(() => this.#dismiss(call, aborted(this.resource, this.workings.closing, signal)));
    if (isTaken) call.onGivingUp(() => this.#outOfTime(call));
    else this.#contend(call).ask();
  }

  /** Whether a call waits for its turn, here or in the queue of the store. */
  get isWaitedFor(): boolean {
    return this.#calls.size > 0;
  }

  /** Whether the hold stands on what this line was granted. */
  isTenureOf({ tenure }: Hold): boolean {
    return this.#tenure === tenure;
  }

  /**
   * The holder releases: the next call gets the lease in memory, or the store is told, together with the wish of the next
   * call if there is one. Says whether the lock was still held; not as a promise where the store was not asked.
   */
  passOn({ ownership, tenure }: Hold): true | Promise<boolean> {
    const next = this.#first();
    if (next && tenure.mayPassTo(next.options)) {
      tenure.passOn();
      this.#grant(next, tenure);
      return true;
    }
    this.#tenure = undefined;
    if (next) return this.#contend(next).askInPlaceOf(ownership);
    this.#checkIdle();
    return this.workings.store.release(ownership);
  }

  /** The holder has lost the lock. */
  lost(): void {
    this.#tenure = undefined;
    const next = this.#first();
    if (next) this.#contend(next).ask();
    else this.#checkIdle();
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
    this.#contender?.withdraw();
    this.#contender = undefined;
    for (const call of this.#calls) call.fail(new LockShutdownError(this.resource));
    this.#calls.clear();
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

  #first(): Call | undefined {
    return this.#calls.values().next().value;
  }

  #contend(call: Call): Contender {
    const { store, random } = this.workings;
    const ownership: Ownership = {
      resource: this.resource,
      owner: createOwnerId(store.instanceId, random),
      mode: call.options.mode,
    };
    call.stopWatching();
    return (this.#contender = new Contender(ownership, call, this, this.workings));
  }

  #grant(call: Call, tenure: Tenure): void {
    this.#tenure = tenure;
    this.#calls.delete(call);
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
    const heir = this.#calls.delete(call) ? this.#first() : undefined;
    const contender = this.#contender;
    if (contender?.call !== call) {
      call.fail(error);
      this.#checkIdle();
    } else if (heir && contender.suits(heir)) {
      contender.passTo(heir);
      call.fail(error);
    } else this.#dismissFirst(call, error);
  }

  /** The call ends ungranted, and its contender with it. */
  #dismissFirst(call: Call, error: Error): void {
    this.#contender!.withdraw();
    this.#contender = undefined;
    this.#calls.delete(call);
    call.fail(error);
    const next = this.#first();
    if (next) this.#contend(next).ask();
    else this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#calls.size === 0 && !this.#tenure && !this.#contender) this.onIdle(this);
  }
}
