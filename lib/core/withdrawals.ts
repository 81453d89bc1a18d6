import { setMaxListeners } from 'node:events';
import type { Alarms } from './alarms.js';
import { answerWithin } from './answer.js';
import { inRootContext } from './async-contexts.js';
import type { Clock } from './clock.js';
import type { ResolvedLockOptions } from './lock-options.js';
import type { LockStore, Ownership } from './lock-store.js';
import { pause } from './pause.js';

/** First and longest pause between two tries. */
const PAUSE_MS = { first: 20, longest: 500 };

/** How long the lock may live, and how long one command may take. */
type Limits = Pick<ResolvedLockOptions, 'leaseMs' | 'attemptTimeoutMs'>;

/**
 * Releases whose outcome is not known yet, and the ends of acquisitions that may have succeeded unnoticed. Each is sent
 * again until it is answered or until the lock has expired by itself.
 */
export class Withdrawals {
  /** By owner. */
  readonly #pending = new Map<string, Promise<void>>();
  readonly #withdrawn = new WeakSet<Ownership>();
  readonly #stop = new AbortController();

  constructor(
    private readonly store: Pick<LockStore, 'release'>,
    private readonly clock: Clock,
    private readonly alarms: Alarms,
  ) {
    setMaxListeners(0, this.#stop.signal);
  }

  get size(): number {
    return this.#pending.size;
  }

  start(ownership: Ownership, limits: Limits): void {
    this.#withdrawn.add(ownership);
    // It may go on for as long as the lease lasts: the caller's data is not kept for so long.
    inRootContext(() => this.#begin(ownership, limits));
  }

  #begin(ownership: Ownership, limits: Limits): void {
    const before = this.#pending.get(ownership.owner);
    const repeat = () => this.#repeat(ownership, limits);
    const work = (before ? before.then(repeat) : repeat()).finally(() => {
      if (this.#pending.get(ownership.owner) === work) this.#pending.delete(ownership.owner);
    });
    this.#pending.set(ownership.owner, work);
  }

  /** A message says that the store knows this owner still. Nothing more is sent where a release is under way: it comes after that. */
  again(ownership: Ownership, limits: Limits): void {
    if (!this.#pending.has(ownership.owner)) this.start(ownership, limits);
  }

  /**
   * For a command that nobody waits for any more. It may be executed after the release that was to withdraw it, or to end the
   * lease: a script that Redis did not know is sent once more. What it grants then is given back as well.
   *
   * @param isHeld whether the lock is wanted after all
   */
  refuseLateGrant(
    command: Promise<{ readonly status: string }>,
    ownership: Ownership,
    limits: Limits,
    isHeld = () => !this.#withdrawn.has(ownership),
  ): void {
    command.then(
      ({ status }) => {
        if (status === 'granted' && !isHeld()) this.start(ownership, limits);
      },
      () => {},
    );
  }

  /** Waits for all of them, but no longer than `patienceMs`; the rest is left to expire. */
  async settle(patienceMs: number): Promise<void> {
    const timer = this.clock.setTimer(() => this.#stop.abort(), patienceMs);
    await Promise.all(this.#pending.values());
    timer.cancel();
    this.#stop.abort();
  }

  async #repeat(ownership: Ownership, { leaseMs, attemptTimeoutMs }: Limits): Promise<void> {
    const expiresAt = this.clock.now() + leaseMs;
    for (let delayMs = PAUSE_MS.first; ; delayMs = Math.min(delayMs * 2, PAUSE_MS.longest)) {
      const command = this.store.release(ownership);
      const answer = await answerWithin(this.alarms, command, attemptTimeoutMs, this.#stop.signal);
      if (answer.outcome === 'answered' || answer.outcome === 'aborted') return;
      if (answer.outcome === 'failed' && answer.error.failure === 'refused') return;
      if (this.clock.now() + delayMs >= expiresAt) return;
      if ((await pause(this.clock, delayMs, this.#stop.signal)) === 'aborted') return;
    }
  }
}
