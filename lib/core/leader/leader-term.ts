import { setMaxListeners } from 'node:events';
import { inRootContext } from '../util/async-contexts.js';
import { Deferred } from '../util/promises.js';
import { InvalidLockOptionsError } from '../api/errors.js';
import { isGenerator, refuseGenerator } from '../api/validation.js';
import { quote } from '../util/quoted.js';
import { type LeaseLostError, NotLeaderError } from '../api/lease-errors.js';
import { PrintableLease, type SingleLease } from '../lease/single-lease.js';
import type { EnteredLease, LockContext } from '../holding/lock-context.js';
import type { DemotionReason, LeaderWork, Term } from './leadership.js';

/** One term of this instance, from its election until its lease is released or lost. */
export class LeaderTerm extends PrintableLease implements EnteredLease, Term {
  readonly #leadership: string;
  readonly #lease: SingleLease;
  readonly #context: LockContext;
  readonly #controller = new AbortController();
  readonly #work = new RunningWork();
  readonly #callbacks = new RunningWork();
  /** Settles when another instance may lead, whatever still runs here. */
  readonly #forfeited = new Deferred<void>();
  readonly #demoted = new Deferred<DemotionReason>();
  readonly #over = new Deferred<void>();

  /** @param leadership its name */
  constructor(leadership: string, lease: SingleLease, context: LockContext) {
    super();
    this.#leadership = leadership;
    this.#lease = lease;
    this.#context = context;
    // All the work of a leader may listen to it.
    setMaxListeners(0, this.#controller.signal);
    const { signal } = lease;
    const lost = (): void => this.#lost(signal.reason as LeaseLostError);
    if (signal.aborted) lost();
    else signal.addEventListener('abort', lost, { once: true });
  }

  get resource() {
    return this.#lease.resource;
  }

  get resources() {
    return this.#lease.resources;
  }

  get mode() {
    return this.#lease.mode;
  }

  get fencingToken() {
    return this.#lease.fencingToken;
  }

  fencingTokenOf(resource: string): number {
    return this.#lease.fencingTokenOf(resource);
  }

  get signal(): AbortSignal {
    this.#lease.isHeld(); // finds a loss that no timer has found yet
    return this.#controller.signal;
  }

  get holds() {
    return this.#lease.holds;
  }

  get isReleased(): boolean {
    return this.#lease.isReleased;
  }

  /** Whether new work may start in it. */
  get isRunning(): boolean {
    return !this.signal.aborted;
  }

  /** When it ends, and why. */
  get demoted(): Promise<DemotionReason> {
    return this.#demoted.promise;
  }

  isHeld(): boolean {
    return this.#lease.isHeld();
  }

  remainingMs(): number {
    return this.#lease.remainingMs();
  }

  assertHeld(): void {
    this.#lease.assertHeld();
  }

  verify(): Promise<boolean> {
    return this.#lease.verify();
  }

  extend(leaseMs?: number): Promise<void> {
    return this.#lease.extend(leaseMs);
  }

  downgrade(): Promise<void> {
    return this.#lease.downgrade();
  }

  get permits(): number | undefined {
    return this.#lease.permits;
  }

  releasePermits(count: number): Promise<void> {
    return this.#lease.releasePermits(count);
  }

  async transfer(): Promise<string> {
    throw new InvalidLockOptionsError(
      `A term cannot be transferred to a chosen process. Call resign() or release(): the next candidate then leads.`,
      'transfer',
    );
  }

  async release(): Promise<void> {
    this.demote(new NotLeaderError(this.#leadership, 'released'));
    // The work would wait for itself.
    if (!this.isEntered()) await this.#over.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Whether the running code is work or a callback of this term. */
  isEntered(): boolean {
    return this.#context.has(this.#lease.hold);
  }

  /** Starts no new work, and tells running work to end. */
  demote(reason: DemotionReason): void {
    if (this.#controller.signal.aborted) return;
    // Listeners of the term belong to the campaign, not to the caller that resigns.
    inRootContext(() => this.#controller.abort(reason));
    this.#demoted.resolve(reason);
  }

  run<T>(work: LeaderWork<T>): Promise<T> {
    const result = this.#context.run(this, async () => {
      const result = await work(this);
      if (isGenerator(result)) throw refuseGenerator(result, `the leadership ${quote(this.#leadership)}`);
      return result;
    });
    this.#work.add(result);
    return result;
  }

  /** Calls back a moment later: by then the caller has what `campaign()` returns. */
  call(callback: () => unknown): Promise<unknown> {
    const result = this.#context.run(this, async () => {
      await Promise.resolve();
      return callback();
    });
    this.#callbacks.add(result);
    return result;
  }

  /**
   * After the demotion: waits for the work, as long as no other instance may lead meanwhile, and releases the lease.
   */
  async end(): Promise<void> {
    const allDone = Promise.all([this.#work.whenDone(), this.callbacksDone()]);
    await Promise.race([allDone, this.#forfeited.promise]);
    const wasHeld = this.#lease.isHeld();
    const released = this.#lease[Symbol.asyncDispose]();
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
