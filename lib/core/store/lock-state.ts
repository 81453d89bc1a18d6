import type { LockLabel } from '../api/label.js';
import type { LockMode } from '../api/lock-options.js';

/** One holder of a resource as operators see it, without secrets. */
export interface LockHolder {
  /** Which process holds it: host, process id, and a few random characters, unless `instanceId` was set. */
  readonly instanceId: string;
  readonly fencingToken: number;
  /** What is left of its lease, in milliseconds, by the clock of Redis. */
  readonly ttlMs: number;
  /** How often a reentrant holder, or a writer, has entered; 1 otherwise. */
  readonly depth: number;
  /** How many permits of a semaphore it holds; not set in other modes. */
  readonly permits?: number;
  /** What the holder says of itself (option `label`). Any client of your Redis can write it. */
  readonly label?: LockLabel;
  /** The lease was handed on inside that process, to a call that has not named itself yet. */
  readonly isHandedOn?: true;
  /**
   * For how long that process has held it since Redis granted it, in milliseconds, by the clock of Redis. An adopted
   * lease counts on. Not set where the store does not tell.
   */
  readonly heldMs?: number;
  /** Set where it was released, and stays taken until its `minHoldMs` is over. */
  readonly isKept?: true;
}

/** A waiter in the queue in Redis: one call of its process, and all calls of that process that wait behind it. */
export interface LockWaiter {
  readonly instanceId: string;
  readonly mode: LockMode;
  /** How many permits of a semaphore it waits for; not set in other modes. */
  readonly permits?: number;
  /** What the waiting call says of itself (option `label`). Any client of your Redis can write it. */
  readonly label?: LockLabel;
  /**
   * What is left of its place in the queue unless it is kept, in milliseconds. A living waiter keeps it at a third of
   * the lease that it asks for, or more often, and the place then lasts as long as that lease. So what is left says
   * little by itself; if a second look shows more, the waiter lives. Not set for calls that wait in this process only.
   */
  readonly placeMs?: number;
}

/** The state of one resource in Redis at one moment. */
export interface LockState {
  readonly resource: string;
  /** `null` if the resource is free. */
  readonly mode: LockMode | null;
  /** None, one, or several readers or holders of permits, in the order of their tokens. */
  readonly holders: readonly LockHolder[];
  /** The time until the last of the leases ends unless it is renewed, in milliseconds; 0 if the resource is free. */
  readonly ttlMs: number;
  /** How many permits a semaphore in use has, and how many of them are free. Not set in other modes. */
  readonly permits?: { readonly total: number; readonly available: number };
  /**
   * The waiters in the queue; the first is granted next. If calls of the asking instance wait behind its own holder,
   * that instance is listed last.
   */
  readonly waiters: readonly LockWaiter[];
}
