import { setMaxListeners } from 'node:events';
import type { Alarms } from '../util/alarms.js';
import { withTimeout } from './ask.js';
import { inRootContext } from '../util/async-contexts.js';
import type { Clock } from '../util/clock.js';
import { LateGrants, type Limits } from './late-grants.js';
import type { LockStore, LockOwner, PushedGrant } from './lock-store.js';
import { pause } from '../util/promises.js';

/** First and longest pause between two tries. */
const PAUSE_MS = { first: 20, longest: 500 };

/** A command that goes before the release, and is sent again with it. */
type Before = () => Promise<unknown>;

/**
 * Releases whose outcome is not known yet, and the ends of acquisitions that may have succeeded unnoticed. Each is sent
 * again until it is answered or until the lock has expired by itself.
 */
export class OrphanReleases {
  /** By id. */
  readonly #pending = new Map<string, Promise<void>>();
  /** By what was withdrawn: what is sent before its release. */
  readonly #withdrawn = new WeakMap<LockOwner, Before | undefined>();
  readonly #late: LateGrants;
  readonly #stop = new AbortController();

  constructor(
    private readonly store: Pick<LockStore, 'release'>,
    private readonly clock: Clock,
    private readonly alarms: Alarms,
  ) {
    setMaxListeners(0, this.#stop.signal);
    this.#late = new LateGrants(clock);
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Of how many resources something may be granted here that nobody wants any more. */
  get departed(): number {
    return this.#late.size;
  }

  start(ownership: LockOwner, limits: Limits, before = this.#withdrawn.get(ownership)): void {
    this.#withdrawn.set(ownership, before);
    // It may go on for as long as the lease lasts: the caller's data is not kept for so long.
    inRootContext(() => this.#begin(ownership, limits, before));
  }

  #begin(ownership: LockOwner, limits: Limits, before: Before | undefined): void {
    const earlier = this.#pending.get(ownership.id);
    const repeat = () => this.#repeat(ownership, limits, before);
    const work = (earlier ? earlier.then(repeat) : repeat()).finally(() => {
      if (this.#pending.get(ownership.id) === work) this.#pending.delete(ownership.id);
    });
    this.#pending.set(ownership.id, work);
  }

  /** The id waits no more, and so many of its questions may still be executed. What they are granted is given back. */
  expectLate(ownership: LockOwner, limits: Limits, unanswered: number): void {
    this.#late.expect(ownership, limits, unanswered);
  }

  /** One question is answered of an id that waits no more. */
  answered(ownership: LockOwner): void {
    this.#late.answered(ownership);
  }

  /**
   * A message says that somebody was granted something who does not wait for it here. It changes nothing unless that is one of
   * this client's: whoever may use the channels can repeat in one inbox what was said in another.
   */
  hear(grant: PushedGrant, isHeld: (ownership: LockOwner) => boolean): void {
    const departed = this.#late.claim(grant);
    if (departed && !isHeld(departed.ownership)) this.start(departed.ownership, departed.limits);
  }

  /** Releases it once more. Nothing more is sent where a release is under way: it comes after that. */
  again(ownership: LockOwner, limits: Limits): void {
    if (!this.#pending.has(ownership.id)) this.start(ownership, limits);
  }

  /**
   * For a command that nobody waits for any more. It may be executed after the release that was to withdraw it, or to end the
   * lease: a script that Redis did not know is sent once more. What it grants then is given back as well.
   *
   * @param isHeld whether the lock is wanted after all
   */
  refuseLateGrant(
    command: Promise<{ readonly status: string }>,
    ownership: LockOwner,
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

  async #repeat(
    ownership: LockOwner,
    { leaseMs, attemptTimeoutMs }: Limits,
    before: Before | undefined,
  ): Promise<void> {
    const expiresAt = this.clock.now() + leaseMs;
    for (let delayMs = PAUSE_MS.first; ; delayMs = Math.min(delayMs * 2, PAUSE_MS.longest)) {
      const command = before ? this.#inOrder(before, ownership) : this.store.release(ownership);
      const answer = await withTimeout(this.alarms, command, attemptTimeoutMs, this.#stop.signal);
      if (answer.outcome === 'answered' || answer.outcome === 'aborted') return;
      if (answer.outcome === 'failed' && answer.error.failure === 'refused') return;
      if (this.clock.now() + delayMs >= expiresAt) return;
      if ((await pause(this.clock, delayMs, this.#stop.signal)) === 'aborted') return;
    }
  }

  /** The release is sent whatever becomes of the command before it. */
  async #inOrder(before: Before, ownership: LockOwner): Promise<boolean> {
    const [first] = await Promise.allSettled([before()]);
    const wasHeld = await this.store.release(ownership);
    if (first.status === 'rejected') throw first.reason;
    return wasHeld;
  }
}
