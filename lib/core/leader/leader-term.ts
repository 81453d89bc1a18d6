import { setMaxListeners } from 'node:events';
import { inRootContext } from '../util/async-contexts.js';
import { Deferred } from '../util/deferred.js';
import { InvalidLockOptionsError, type LeaseLostError } from '../api/errors.js';
import { PrintableLease, type SingleLease } from '../lease/single-lease.js';
import type { LeaderWork } from './leadership.js';
import type { EnteredLease, LockContext } from '../holding/lock-context.js';
import { NotLeaderError } from '../api/not-leader-error.js';
import { RunningWork } from '../util/running-work.js';
import type { DemotionReason, Term } from './term.js';

/** One term of this instance, from its election until its lease is released or lost. */
export class LeaderTerm extends PrintableLease implements EnteredLease, Term {
  readonly #leadership: string;
  readonly #lease: SingleLease;
  readonly #context: LockContext;
  readonly #controller = new AbortController();
  readonly #work = new RunningWork();
  readonly #callbacks = new RunningWork();
  /** Settles when somebody else may lead, whatever still runs here. */
  readonly #forfeited = new Deferred<void>();
  readonly #demoted = new Deferred<DemotionReason>();
  readonly #over = new Deferred<void>();

  /** @param leadership its name */
  constructor(leadership: string, lease: SingleLease, context: LockContext) {
    super();
    this.#leadership = leadership;
    this.#lease = lease;
    this.#context = context;
    // Everything that this instance does as the leader may listen to it.
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

  async transfer(): Promise<string> {
    throw new InvalidLockOptionsError(
      `A term cannot be handed on to a certain process. resign() or release() it: then whoever campaigns next leads.`,
      'transfer',
    );
  }

  async release(): Promise<void> {
    this.demote(new NotLeaderError(this.#leadership, 'released'));
    // It would wait for itself.
    if (!this.isEntered()) await this.#over.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Whether the running code is work or a callback of this term. */
  isEntered(): boolean {
    return this.#context.has(this.#lease.hold);
  }

  /** No new work starts in it, and what runs is told to end. */
  demote(reason: DemotionReason): void {
    if (this.#controller.signal.aborted) return;
    // Whoever resigns: what listens to the term belongs to the campaign.
    inRootContext(() => this.#controller.abort(reason));
    this.#demoted.resolve(reason);
  }

  run<T>(work: LeaderWork<T>): Promise<T> {
    const result = this.#context.run(this, async () => work(this));
    this.#work.add(result);
    return result;
  }

  /** Calls back a moment later: not before whoever gave the callback has what `campaign()` returns. */
  call(callback: () => unknown): Promise<unknown> {
    const result = this.#context.run(this, async () => {
      await Promise.resolve();
      return callback();
    });
    this.#callbacks.add(result);
    return result;
  }

  /** After its demotion: waits for its work as long as nobody else may lead meanwhile, and gives the leadership back. */
  async end(): Promise<void> {
    const allDone = Promise.all([this.#work.whenDone(), this.callbacksDone()]);
    await Promise.race([allDone, this.#forfeited.promise]);
    const wasHeld = this.#lease.isHeld();
    const released = this.#lease[Symbol.asyncDispose]();
    // After a loss nothing depends on the answer, and Redis may be silent.
    if (wasHeld) await released;
    this.#over.resolve();
  }

  callbacksDone(): Promise<void> {
    return this.#callbacks.whenDone();
  }

  #lost(error: LeaseLostError): void {
    this.demote(error);
    // What outlives a shutdown keeps the lock until it expires, like all work does: nobody is elected while it runs.
    if (error.reason !== 'shutdown') this.#forfeited.resolve();
  }
}
