import type { LockState } from '../../../../kernel/store/lock-state.js';

/** The likely cause that {@link LockExplanation} names. */
const LOCK_CAUSES = [
  /** No process holds the resource, and none waits for it. */
  'free',
  /** The resource is held or about to be granted, and no problem is visible. */
  'inUse',
  /** The holder has had the resource for 5 s or longer, no renewal is overdue, and other calls wait. */
  'holderSlow',
  /**
   * The lease is about to expire and was not renewed when it was due: the holder has died, is blocked or cannot reach
   * Redis.
   */
  'holderDead',
  /** The lease is never renewed: it was acquired with `watchdog: false`. */
  'fixedLease',
  /** Calls wait for each other in a cycle: each holds what the next one waits for. All instances were asked. */
  'deadlock',
  /**
   * The run of a job holds the resource, and later ticks were skipped or are waiting, because the run has not ended.
   */
  'overlap',
  /** The holder is a leader, and keeps the resource for as long as it leads. The waiters are candidates. */
  'leadership',
  /** The processes in the queue no longer extend their places. */
  'deadWaiters',
  /** The holder has released the resource, but it is kept until `minHoldMs` has passed. */
  'kept',
  /** The resource is in use in another mode than the call requests, or as a semaphore of another size. */
  'mismatch',
  /** A database transaction of this process keeps the resource until the transaction ends. */
  'transaction',
  /** The async context that calls `explain()` holds the resource itself. */
  'heldByThisCall',
  /** Another call of this process holds the resource, and calls of this process wait. */
  'heldByThisProcess',
] as const;
export type LockCause = (typeof LOCK_CAUSES)[number];

/** The result of `locks.explain()`. Frozen, and can be serialized as JSON. */
export class LockExplanation {
  /** All sentences as one text. */
  readonly text: string;

  /** @internal */
  constructor(
    readonly resource: string,
    /** The likely cause. */
    readonly cause: LockCause,
    /**
     * The explanation for people: the holders, the waiters, the cause and the remedy. The most important sentence comes
     * first. Names are escaped.
     */
    readonly sentences: readonly string[],
    /** The state in Redis, as in `locks.inspect()`. */
    readonly state: LockState,
  ) {
    this.text = sentences.join(' ');
    Object.freeze(this);
  }

  /** Returns `text`. */
  toString(): string {
    return this.text;
  }
}

/** A run of a job that has kept later ticks from running. */
export interface JobOverlap {
  readonly ranMs: number;
  /** When the last of these ticks was due, in milliseconds since the Unix epoch. */
  readonly lastAt: number;
}

/** The part that this process knows without asking. */
export interface OwnPart {
  readonly instanceId: string;
  readonly holds: readonly {
    readonly fencingToken: number;
    readonly group: string;
    readonly heldMs: number;
    readonly isRenewed: boolean;
    /** `true` if the asking async context holds it. */
    readonly isOfThisCall: boolean;
    /** `true` if its work has ended, but a database transaction keeps it. */
    readonly isKeptByTransaction: boolean;
  }[];
  readonly waiting: number;
  /** The time that the longest wait has taken so far. */
  readonly longestWaitMs: number;
  /** The lease that its first waiting call asks for. */
  readonly wanted: { readonly watchdog: boolean } | undefined;
  /** How long the calls of all instances have waited, for a reader outside of them. */
  readonly waitsElsewhereMs?: readonly number[];
}
