import type { ActiveHolds } from './active-holds.js';
import type { Alarms } from './alarms.js';
import { type Answer, answerWithin, ask } from './answer.js';
import type { Clock } from './clock.js';
import type { Contention } from './contention.js';
import { LockReentryError, LockUnavailableError } from './errors.js';
import type { LockObservers } from './events.js';
import type { Hold } from './hold.js';
import type { EnteredLease, LockContext } from './lock-context.js';
import { MAX_LEASE_MS, MIN_LEASE_MS } from './lock-options.js';
import { asStoreError, type LockStore } from './lock-store.js';
import { PrintableLease } from './printable-lease.js';
import { notAmong } from './resource.js';
import { checkInteger } from './validation.js';
import type { Watchdog } from './watchdog.js';
import type { Withdrawals } from './withdrawals.js';

/** What a lease works with; one for all leases of a client. */
export interface LeaseWorkings {
  readonly store: LockStore;
  readonly contention: Contention;
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly observers: LockObservers;
  readonly watchdog: Watchdog;
  readonly withdrawals: Withdrawals;
  readonly active: ActiveHolds;
  readonly context: LockContext;
}

const OVER = Promise.resolve();
const PASSED_ON = { outcome: 'answered', value: true } as const;

/** The lease of one resource. */
export class HeldLease extends PrintableLease implements EnteredLease {
  #ending: Promise<void> | undefined;
  #isBound = false;

  constructor(
    readonly hold: Hold,
    private readonly workings: LeaseWorkings,
  ) {
    super();
  }

  get resource() {
    return this.hold.ownership.resource;
  }

  get resources() {
    return [this.resource];
  }

  get mode() {
    return this.hold.ownership.mode;
  }

  get fencingToken() {
    return this.hold.fencingToken;
  }

  fencingTokenOf(resource: string): number {
    if (resource !== this.resource) throw notAmong(this.resources, resource);
    return this.fencingToken;
  }

  get signal() {
    return this.hold.signal;
  }

  get holds() {
    return [this.hold];
  }

  get isReleased(): boolean {
    return this.#ending !== undefined;
  }

  isHeld(): boolean {
    return this.#ending === undefined && this.hold.isHeld();
  }

  remainingMs(): number {
    return this.isHeld() ? this.hold.remainingMs() : 0;
  }

  assertHeld(): void {
    if (!this.isHeld()) throw this.hold.lossError();
  }

  async verify(): Promise<boolean> {
    if (!this.isHeld()) return false;
    const isOwner = await this.#ask('verify', this.workings.store.verify(this.hold.ownership));
    // Whoever of this process holds the lock by now.
    if (!isOwner) this.hold.tenure.takenOver();
    return this.isHeld();
  }

  async extend(leaseMs: number = this.hold.leaseMs): Promise<void> {
    checkInteger('leaseMs', leaseMs, MIN_LEASE_MS, MAX_LEASE_MS);
    this.assertHeld();
    const { hold, workings } = this;
    const { tenure } = hold;
    const sentAt = workings.clock.now();
    const renewalMs = hold.renewalMs(leaseMs);
    const renewal = tenure.renewing(sentAt, renewalMs, true);
    const { nextRenewalAt } = tenure;
    // It may shorten the lease: then the watchdog must not come too late.
    tenure.nextRenewalAt = Math.min(nextRenewalAt, sentAt + leaseMs / 3);
    workings.watchdog.watch(hold);
    const command = workings.store.renew(hold.ownership, renewalMs, true);
    // Also when nobody waits for the reply any more.
    command.then(
      (stillOwner) => (stillOwner ? tenure.confirm(renewal) : tenure.takenOver()),
      (error: unknown) => {
        if (asStoreError(error).failure === 'unknown') return tenure.forget(renewal);
        tenure.dismiss(renewal);
        tenure.nextRenewalAt = Math.max(tenure.nextRenewalAt, nextRenewalAt);
      },
    );
    await this.#ask('extend', command);
    this.assertHeld();
    tenure.leaseMs = leaseMs;
    tenure.nextRenewalAt = sentAt + leaseMs / 3;
    workings.watchdog.watch(hold);
  }

  release(): Promise<void> {
    if (this.#ending) return this.#ending;
    if (this.#isBound && this.mode === 'reentrant' && !this.workings.context.has(this.hold)) {
      return Promise.reject(LockReentryError.foreignRelease(this.resource));
    }
    return this.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end().catch(() => {});
  }

  /** From now on the lease belongs to the async context it was entered in. */
  bind(): this {
    this.#isBound = true;
    if (this.hold.isHeld()) this.workings.active.add(this.hold);
    return this;
  }

  /** Releases, whatever the async context. */
  end(): Promise<void> {
    if (this.#ending) return this.#ending;
    // Now: an observer, or a listener of the signal, may call this again before #end() returns.
    this.#ending = OVER;
    return (this.#ending = this.#end());
  }

  #end(): Promise<void> {
    const { hold, workings } = this;
    hold.depth--;
    if (hold.depth > 0) return this.#leaveOne();
    const wasHeld = hold.end();
    const heldMs = workings.clock.now() - hold.acquiredAt;
    workings.watchdog.unwatch(hold);
    const released = workings.contention.giveBack(hold, () => this.#ended(PASSED_ON, wasHeld, heldMs));
    if (released === undefined) return OVER;
    const answer = answerWithin(workings.alarms, released, hold.attemptTimeoutMs);
    const ended = answer.then((known) => this.#ended(known, wasHeld, heldMs));
    if (!hold.backgroundRelease) return ended;
    ended.catch(() => {}); // the observers know
    return OVER;
  }

  /** Others still stand on the hold. If Redis misses this, the last release frees the lock all the same. */
  async #leaveOne(): Promise<void> {
    const { hold, workings } = this;
    await hold.inOrder(async () => {
      if (!hold.isHeld()) return;
      const command = workings.store.setDepth(hold.ownership, hold.depth, hold.renewalMs());
      const answer = await answerWithin(workings.alarms, command, hold.attemptTimeoutMs);
      if (answer.outcome === 'answered' && !answer.value) hold.lose('takenOver');
    });
  }

  /** @throws LockUnavailableError when it is not known whether the lock was released */
  #ended(answer: Answer<boolean>, wasHeld: boolean, heldMs: number): void {
    const { hold, workings } = this;
    const { ownership, fencingToken } = hold;
    const { resource } = ownership;
    workings.active.delete(hold);
    if (!wasHeld) {
      workings.observers.emit({ type: 'releasedAfterLoss', resource, fencingToken });
    } else if (answer.outcome === 'answered') {
      if (answer.value) workings.observers.emit({ type: 'released', resource, fencingToken, heldMs });
      else workings.observers.emit({ type: 'lost', resource, fencingToken, reason: 'takenOver' });
    } else if (answer.outcome !== 'aborted') {
      const error = new LockUnavailableError(resource, 'release', answer.outcome, answer.error);
      workings.withdrawals.start(ownership, hold);
      workings.observers.emit({ type: 'releaseFailed', resource, fencingToken, error });
      throw error;
    }
  }

  /** @throws LockUnavailableError */
  #ask<T>(operation: string, command: Promise<T>): Promise<T> {
    return ask(this.workings.alarms, command, this.hold.attemptTimeoutMs, operation, this.resource);
  }
}
