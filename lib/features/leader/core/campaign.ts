import type { CampaignCallbacks, CampaignOptions, DemotionReason, Leadership, LeaderWork, Term } from './leadership.js';
import { Deferred, pause } from '../../../kernel/util/promises.js';
import { InvalidLockOptionsError, type LockError } from '../../../kernel/api/errors.js';
import type { SingleLease } from '../../../kernel/lease/single-lease.js';
import { LeaderTerm } from './leader-term.js';
import type { LockContext } from '../../../kernel/holding/lock-context.js';
import type { ResolvedLockOptions } from '../../../kernel/api/lock-options.js';
import { NotLeaderError } from '../../../kernel/api/lease-errors.js';
import { isAbortedBy, onAbort } from '../../../kernel/util/signals.js';
import { quote } from '../../../kernel/util/quoted.js';
import { RecentTimes } from '../../../kernel/util/recent-times.js';
import type { Runtime } from '../../../kernel/holding/runtime.js';
import { describeValue } from '../../../kernel/api/validation.js';
import { backoff, type Clock, jitter } from '../../../kernel/util/clock.js';
import type { LockObservers } from '../../../kernel/events/observers.js';

export interface CampaignDeps extends Runtime {
  readonly context: LockContext;
  /** Returns the lease itself if every call passes: then this instance leads at once. */
  acquire(resource: string, options: ResolvedLockOptions): SingleLease | Promise<SingleLease>;
}

/** The first and the longest pause after Redis has refused. Up to a quarter is added at random. */
const REFUSED_PAUSE_MS = { first: 500, longest: 30_000 };

/** Acquires the resource, leads until the term ends, and campaigns again, until this instance resigns. */
export class Campaign implements Leadership {
  readonly name: string;
  readonly resource: string;
  readonly #lock: ResolvedLockOptions;
  readonly #deps: CampaignDeps;
  readonly #onOver: () => void;
  readonly #listeners: CampaignListeners;
  /** Aborts the wait to be elected. */
  readonly #stopping = new AbortController();
  /** The signals that make it resign, each with the function that stops listening to it. */
  readonly #signals = new Map<AbortSignal, () => void>();
  #unelected: AbortSignal | undefined;
  /** The term that runs, or the last one. */
  #term: LeaderTerm | undefined;
  #election: Deferred<Term> | undefined;
  /** Settles when nothing is held or waited for. */
  #candidacy: Promise<unknown> = Promise.resolve();
  #over: NotLeaderError | undefined;
  readonly elections: RecentTimes;

  /** @param onOver called when this instance steps down for good */
  constructor(name: string, resource: string, lock: ResolvedLockOptions, deps: CampaignDeps, onOver: () => void) {
    this.name = name;
    this.resource = resource;
    this.#lock = { ...lock, signal: this.#stopping.signal };
    this.#deps = deps;
    this.elections = new RecentTimes(deps.clock);
    this.#listeners = new CampaignListeners(this, deps);
    this.#onOver = onOver;
  }

  /** @throws InvalidLockOptionsError when the campaign runs with another `leaseMs` */
  join({ leaseMs = this.#lock.leaseMs, onElected, onDemoted, signal }: CampaignOptions): void {
    if (leaseMs !== this.#lock.leaseMs) {
      throw new InvalidLockOptionsError(
        `leaseMs of the campaign for ${quote(this.name)} is already ${this.#lock.leaseMs}, not ${leaseMs}: a ` +
          `process campaigns only once for a leadership. Use the same leaseMs everywhere, or in one place only.`,
        'leaseMs',
      );
    }
    // A caller may ask for the campaign again and again, only to look at it.
    if (onElected || onDemoted) {
      const callbacks = { onElected, onDemoted } as CampaignCallbacks;
      this.#listeners.add(callbacks, this.isLeader() ? this.#term : undefined);
    }
    if (signal && !this.#signals.has(signal)) this.#resignAt(signal);
  }

  start(): void {
    if (this.#over) return;
    this.#deps.observers.emit({ type: 'campaigning', ...this.described });
    void this.#campaign();
  }

  isLeader(): boolean {
    return this.#over === undefined && (this.#term?.isRunning ?? false);
  }

  get signal(): AbortSignal {
    if (this.#term) return this.#term.signal;
    if (this.#over) return AbortSignal.abort(this.#over);
    return (this.#unelected ??= AbortSignal.abort(new NotLeaderError(this.name, 'notElected')));
  }

  get fencingToken(): number | undefined {
    return this.isLeader() ? this.#term!.fencingToken : undefined;
  }

  whenElected(): Promise<Term> {
    if (this.#over) return Promise.reject(this.#over);
    if (this.isLeader()) return Promise.resolve(this.#term!);
    return (this.#election ??= new Deferred<Term>()).promise;
  }

  async run<T>(work: LeaderWork<T>): Promise<T | undefined> {
    if (typeof work !== 'function') {
      throw new InvalidLockOptionsError(
        `run needs a function that the leader calls, not ${describeValue(work)}.`,
        'work',
      );
    }
    return this.isLeader() ? this.#term!.run(work) : undefined;
  }

  async resign(): Promise<void> {
    this.stop('resigned');
    if (!this.#term?.isEntered()) await this.#candidacy;
  }

  /** Steps down for good. */
  stop(reason: 'resigned' | 'shutdown'): void {
    if (this.#over) return;
    this.#over = new NotLeaderError(this.name, reason);
    this.#onOver();
    for (const stopListening of this.#signals.values()) stopListening();
    this.#stopping.abort(this.#over);
    this.#term?.demote(this.#over);
    this.#election?.reject(this.#over);
  }

  #resignAt(signal: AbortSignal): void {
    const resign = (): void => this.stop('resigned');
    if (signal.aborted) return resign();
    this.#signals.set(signal, onAbort(signal, resign));
  }

  async #campaign(): Promise<void> {
    const { clock } = this.#deps;
    for (let failures = 0; !this.#over;) {
      const candidacy = this.#runOnce();
      this.#candidacy = candidacy;
      const term = await candidacy;
      failures = term ? 0 : failures + 1;
      if (term) await this.#listeners.untilEnd(term, this.#lock.leaseMs);
      else await pause(clock, this.#pauseAfter(failures), this.#stopping.signal);
    }
  }

  /** @returns the term, once it has ended; undefined when the election failed, or this instance campaigns no more */
  async #runOnce(): Promise<LeaderTerm | undefined> {
    const { acquire, observers } = this.#deps;
    let lease: SingleLease;
    try {
      const acquired = acquire(this.resource, this.#lock);
      lease = acquired instanceof Promise ? await acquired : acquired;
    } catch (error) {
      // acquire() throws only lock errors.
      if (!this.#over) observers.emit({ type: 'campaignFailed', ...this.described, error: error as LockError });
      return undefined;
    }
    if (!this.#over && lease.isHeld()) return this.#lead(lease);
    await lease[Symbol.asyncDispose]();
    return undefined;
  }

  async #lead(lease: SingleLease): Promise<LeaderTerm> {
    const { clock, observers } = this.#deps;
    const { fencingToken } = lease;
    const term = new LeaderTerm(this.name, lease);
    this.#term = term;
    const electedAt = clock.now();
    this.elections.add();
    observers.emit({ type: 'elected', ...this.described, fencingToken });
    this.#election?.resolve(term);
    this.#election = undefined;
    this.#listeners.elected(term);
    const reason = await term.demoted;
    const ledMs = clock.now() - electedAt;
    observers.emit({ type: 'demoted', ...this.described, fencingToken, reason: reason.reason, ledMs });
    this.#listeners.demoted(reason, term);
    await term.end();
    return term;
  }

  get described() {
    const { name: leadership, resource } = this;
    const { service, groups } = this.#deps.observers;
    return { service, group: groups.of(resource, this.#lock.group), leadership, resource };
  }

  #pauseAfter(failures: number): number {
    return backoff(REFUSED_PAUSE_MS, failures) * jitter(this.#deps.random);
  }
}

type CallbackName = 'onElected' | 'onDemoted';

/** The callbacks for the terms of one campaign. */
class CampaignListeners {
  readonly #callbacks: CampaignCallbacks[] = [];
  /** The callbacks that got the current term. */
  #informed: CampaignCallbacks[] = [];
  /** The callbacks that have not ended. */
  readonly #running = new Set<{ readonly callback: CallbackName }>();

  constructor(
    private readonly campaign: Pick<Campaign, 'described'>,
    private readonly deps: { readonly clock: Clock; readonly observers: LockObservers },
  ) {}

  /** @param term the current term: the callback gets it at once */
  add(callbacks: CampaignCallbacks, term: LeaderTerm | undefined): void {
    this.#callbacks.push(callbacks);
    if (term) this.#callElected(callbacks, term);
  }

  elected(term: LeaderTerm): void {
    for (const callbacks of this.#callbacks) this.#callElected(callbacks, term);
  }

  demoted(reason: DemotionReason, term: LeaderTerm): void {
    for (const callbacks of this.#informed.splice(0)) {
      this.#call('onDemoted', term, () => callbacks.onDemoted?.(reason, term));
    }
  }

  /**
   * Waits for the callbacks of a term, because callbacks of two terms never run at the same time. A callback that hangs
   * keeps this instance from campaigning again: after `patienceMs` that is reported.
   */
  async untilEnd(term: LeaderTerm, patienceMs: number): Promise<void> {
    const { clock } = this.deps;
    const timer = clock.setTimer(
      () => {
        for (const running of this.#running) {
          const error = new Error(
            `${running.callback} still runs ${patienceMs} ms after the term has ended. This instance campaigns again only once ` +
              `the callback has ended: end it when the signal of the term aborts.`,
          );
          this.#failed(running, error);
        }
      },
      patienceMs,
      { background: true },
    );
    await term.callbacksDone();
    timer.cancel();
  }

  #callElected(callbacks: CampaignCallbacks, term: LeaderTerm): void {
    this.#informed.push(callbacks);
    this.#call('onElected', term, () => callbacks.onElected?.(term));
  }

  #call(callback: CallbackName, term: LeaderTerm, call: () => unknown): void {
    const running = { callback };
    this.#running.add(running);
    const called = term.call(callback, call).catch((error: unknown) => {
      // The callback ended because of the signal.
      if (isAbortedBy(term.signal, error)) return;
      this.#failed(running, error);
    });
    void called.finally(() => this.#running.delete(running));
  }

  #failed({ callback }: { readonly callback: CallbackName }, error: unknown): void {
    this.deps.observers.emit({ type: 'callbackFailed', ...this.campaign.described, callback, error });
  }
}
