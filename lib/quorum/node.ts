import type { Alarms } from '../core/util/alarms.js';
import type { Clock } from '../core/util/clock.js';
import {
  asStoreError,
  type LockStore,
  LockStoreError,
  type LockOwner,
  type PushedGrant,
} from '../core/store/lock-store.js';
import { OrphanReleases } from '../core/store/orphan-releases.js';

/** A store that votes, and how it is called in messages. */
export interface QuorumMember {
  /** Such as host and port. Never with credentials. */
  readonly name: string;
  readonly store: LockStore;
}

export interface QuorumTiming {
  readonly clock: Clock;
  readonly alarms: Alarms;
  /** How long a node may take for an answer before it counts as one that does not answer, in milliseconds. */
  readonly timeoutMs: number;
}

/** Nothing was sent to a node that has fallen silent. */
export class NotAskedError extends LockStoreError {}

/** One of the nodes of a quorum. One that has fallen silent is asked no more than now and then, until it is heard of again. */
export class QuorumNode {
  readonly name: string;
  readonly store: LockStore;
  /** What may be held there and is not wanted: released again and again until the node answers. */
  readonly #orphanReleases: OrphanReleases;
  /** When the oldest command was sent since which nothing was heard. */
  #unansweredSince: number | undefined;
  #askedAt = -Infinity;

  constructor(
    { name, store }: QuorumMember,
    private readonly timing: QuorumTiming,
  ) {
    this.name = name;
    this.store = store;
    const release = (ownership: LockOwner): Promise<boolean> =>
      new Promise((resolve, reject) => this.ask(() => store.release(ownership), resolve, reject));
    this.#orphanReleases = new OrphanReleases({ release }, timing.clock, timing.alarms);
  }

  /** Sends a command. What does not answer would only pile up what it was asked: then it is not sent. */
  ask<T>(command: () => Promise<T>, answered: (answer: T) => void, failed: (error: LockStoreError) => void): void {
    const now = this.timing.clock.now();
    const silence = this.#silence(now);
    if (silence && now - this.#askedAt < this.timing.timeoutMs) {
      queueMicrotask(() => failed(silence));
      return;
    }
    this.#unansweredSince ??= now;
    this.#askedAt = now;
    command().then(
      (answer) => {
        this.#unansweredSince = undefined;
        answered(answer);
      },
      (error: unknown) => {
        this.#unansweredSince = undefined;
        failed(asStoreError(error));
      },
    );
  }

  /** Why it is of no use to ask it about a resource at this moment, where that is known. */
  trouble(resource: string): LockStoreError | undefined {
    return this.#silence(this.timing.clock.now()) ?? this.store.trouble(resource);
  }

  #silence(now: number): LockStoreError | undefined {
    const silentMs = now - (this.#unansweredSince ?? now);
    if (silentMs <= this.timing.timeoutMs) return undefined;
    return new NotAskedError('notExecuted', `has not answered for ${Math.round(silentMs)} ms`);
  }

  /** Releases what this owner may have here, in the background, until it is known or its time is over. */
  withdraw(ownership: LockOwner, leaseMs: number): void {
    this.#orphanReleases.again(ownership, { leaseMs, attemptTimeoutMs: this.timing.timeoutMs });
  }

  /** The owner waits no more, and so many of its questions may still be executed here. */
  expectLate(ownership: LockOwner, leaseMs: number, unanswered: number): void {
    this.#orphanReleases.expectLate(ownership, { leaseMs, attemptTimeoutMs: this.timing.timeoutMs }, unanswered);
  }

  /** One question is answered of an owner that waits no more. */
  answered(ownership: LockOwner): void {
    this.#orphanReleases.answered(ownership);
  }

  /** A message says that somebody was granted something here who does not wait for it. */
  hear(grant: PushedGrant): void {
    this.#orphanReleases.hear(grant, () => false);
  }

  /** How many releases are not answered yet. */
  get withdrawing(): number {
    return this.#orphanReleases.size;
  }

  async close(): Promise<void> {
    await this.#orphanReleases.settle(this.timing.timeoutMs);
    await this.store.close();
  }
}
