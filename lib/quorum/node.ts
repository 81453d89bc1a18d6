import type { Alarms } from '../kernel/util/alarms.js';
import type { Clock, Random } from '../kernel/util/clock.js';
import { asStoreError, LockStoreError } from '../kernel/store/store-error.js';
import type { LockStore, LockOwner, Retention } from '../kernel/store/lock-store.js';
import type { PushedGrant, PushedNotice } from '../kernel/store/message-health.js';
import { OrphanReleases } from '../kernel/store/orphan-releases.js';

/** One store of a quorum, and its name in messages. */
export interface QuorumMember {
  /** Such as host and port. Never with credentials. */
  readonly name: string;
  readonly store: LockStore;
}

interface QuorumTiming {
  readonly clock: Clock;
  readonly alarms: Alarms;
  /** A node that takes longer than this to answer counts as one that does not answer, in milliseconds. */
  readonly timeoutMs: number;
}

/** Whom a command is sent to, and how long each has for its answer. */
export interface QuorumNodes extends QuorumTiming {
  readonly nodes: readonly QuorumNode[];
  readonly majority: number;
}

export interface QuorumDeps extends QuorumNodes {
  readonly random: Random;
  /** `true` if the largest token of the votes is written to a majority before a lock is granted. */
  readonly fencing: boolean;
  /** Called for a lock that was won when no request was waiting for its answer. */
  readonly granted: (grant: PushedGrant) => void;
  /** Called when a majority of the nodes has announced when it becomes free. */
  readonly retained: (notice: PushedNotice) => void;
  readonly newAttempt: () => number;
}

/** The node is silent, so the command was not sent. */
export class NotSentError extends LockStoreError {}

/** One node of a quorum. A silent node gets one command per time-out, until it answers again. */
export class QuorumNode {
  readonly name: string;
  readonly store: LockStore;
  /** Unwanted locks that this process may hold here: released again and again until the node answers. */
  readonly orphanReleases: OrphanReleases;
  /** The send time of the oldest command without an answer since the last answer of the node. */
  #unansweredSince: number | undefined;
  #askedAt = -Infinity;

  constructor(
    { name, store }: QuorumMember,
    private readonly timing: QuorumTiming,
  ) {
    this.name = name;
    this.store = store;
    const ask = (command: () => Promise<boolean>): Promise<boolean> =>
      new Promise((resolve, reject) => this.ask(command, resolve, reject));
    const releases = {
      release: (owner: LockOwner) => ask(() => store.release(owner)),
      retain: (owner: LockOwner, retention: Retention) => ask(() => store.retain(owner, retention)),
    };
    this.orphanReleases = new OrphanReleases(releases, timing.clock, timing.alarms);
  }

  /** Sends a command, unless the node is silent: commands would only pile up there. */
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

  trouble(resource: string): LockStoreError | undefined {
    return this.#silence(this.timing.clock.now()) ?? this.store.trouble(resource);
  }

  #silence(now: number): LockStoreError | undefined {
    const silentMs = now - (this.#unansweredSince ?? now);
    if (silentMs <= this.timing.timeoutMs) return undefined;
    return new NotSentError('notExecuted', `has not answered for ${Math.round(silentMs)} ms`);
  }

  /** Releases what this owner may have here, in the background, until the node answers or the lease has ended. */
  releaseOrphan(owner: LockOwner, leaseMs: number): void {
    this.orphanReleases.again(owner, { leaseMs, attemptTimeoutMs: this.timing.timeoutMs });
  }

  /**
   * The owner does not wait any more. The node may still execute this many of its commands; their grants are released.
   */
  expectLate(owner: LockOwner, leaseMs: number, unanswered: number): void {
    this.orphanReleases.late.expect(owner, { leaseMs, attemptTimeoutMs: this.timing.timeoutMs }, unanswered);
  }

  async close(): Promise<void> {
    await this.orphanReleases.settle(this.timing.timeoutMs);
    await this.store.close();
  }
}
