import { setMaxListeners } from 'node:events';
import { inRootContext } from '../../../kernel/util/async-contexts.js';
import { Deferred } from '../../../kernel/util/promises.js';
import { refuseUnfinished, unfinishedWork } from '../../../kernel/api/work.js';
import { quote } from '../../../kernel/util/quoted.js';
import { type LeaseLostError, NotLeaderError } from '../../../kernel/api/lease-errors.js';
import { SingleLease } from '../../../kernel/lease/single-lease.js';
import type { LockContext } from '../../../kernel/holding/lock-context.js';
import type { DemotionReason, LeaderWork, Term } from './leadership.js';

/** One term of this instance, from its election until its lease is released or lost. */
export class LeaderTerm extends SingleLease implements Term {
  readonly #leadership: string;
  readonly #context: LockContext;
  readonly #controller = new AbortController();
  readonly #work = new RunningWork();
  readonly #callbacks = new RunningWork();
  /** Settles when another instance may lead, whatever still runs here. */
  readonly #forfeited = new Deferred<void>();
  readonly #demoted = new Deferred<DemotionReason>();
  readonly #over = new Deferred<void>();

  /** @param lease takes its place */
  constructor(leadership: string, { hold, deps }: SingleLease) {
    super(hold, deps);
    this.#leadership = leadership;
    this.#context = deps.context;
    // All the work of a leader may listen to it.
    setMaxListeners(0, this.#controller.signal);
    const { signal } = hold;
    const lost = (): void => this.#lost(signal.reason as LeaseLostError);
    if (signal.aborted) lost();
    else signal.addEventListener('abort', lost, { once: true });
  }

  override get signal(): AbortSignal {
    this.isHeld(); // finds a loss that no timer has found yet
    return this.#controller.signal;
  }

  /** `true` while new work may start in it. */
  get isRunning(): boolean {
    return !this.signal.aborted;
  }

  /** When it ends, and why. */
  get demoted(): Promise<DemotionReason> {
    return this.#demoted.promise;
  }

  override async release(): Promise<void> {
    this.demote(new NotLeaderError(this.#leadership, 'released'));
    // The work would wait for itself.
    if (!this.isEntered()) await this.#over.promise;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Returns true if the running code is work or a callback of this term. */
  isEntered(): boolean {
    return this.#context.has(this.hold);
  }

  /** Starts no new work, and aborts running work. */
  demote(reason: DemotionReason): void {
    if (this.#controller.signal.aborted) return;
    // Listeners of the term belong to the campaign, not to the caller that resigns.
    inRootContext(() => this.#controller.abort(reason));
    this.#demoted.resolve(reason);
  }

  run<T>(work: LeaderWork<T>): Promise<T> {
    const result = this.#context.run(this, async () => {
      try {
        const result = await work(this);
        this.#checkFinished(result);
        this.checkNotLost(result);
        return result;
      } catch (error) {
        throw this.errorOfWork(error);
      }
    });
    this.#work.add(result);
    return result;
  }

  /** Calls back a moment later: by then the caller has what `campaign()` returns. */
  call(name: string, callback: () => unknown): Promise<void> {
    const result = this.#context.run(this, async () => {
      await Promise.resolve();
      this.#checkFinished(await callback(), name);
    });
    this.#callbacks.add(result);
    return result;
  }

  /** @throws InvalidLockOptionsError for a result that would run when another instance may lead */
  #checkFinished(result: unknown, work?: string): void {
    const unfinished = unfinishedWork(result);
    if (unfinished) throw refuseUnfinished(result, unfinished, `the leadership ${quote(this.#leadership)}`, work);
  }

  /** Waits for the work, as long as no other instance may lead, and releases the lease. */
  override async end(): Promise<void> {
    const allDone = Promise.all([this.#work.whenDone(), this.callbacksDone()]);
    await Promise.race([allDone, this.#forfeited.promise]);
    const wasHeld = this.isHeld();
    const released = super.end().catch(() => {});
    // After a loss nothing depends on the reply, and Redis may be silent.
    if (wasHeld) await released;
    this.#over.resolve();
  }

  callbacksDone(): Promise<void> {
    return this.#callbacks.whenDone();
  }

  #lost(error: LeaseLostError): void {
    this.demote(error);
    // Work that outlives a shutdown keeps the lock until the lease expires: no other instance is elected while it runs.
    if (error.reason !== 'shutdown') this.#forfeited.resolve();
  }
}

/** Work that was started and has not ended. */
class RunningWork {
  readonly #running = new Set<Promise<void>>();

  add(work: Promise<unknown>): void {
    const end = (): void => void this.#running.delete(ended);
    const ended: Promise<void> = work.then(end, end);
    this.#running.add(ended);
  }

  /** Resolves when none of it runs any more, however it ended. */
  async whenDone(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
