import type { LockMode } from './lock-options.js';

/** The identity of a lock in the store: only this owner may renew or release it. */
export interface Ownership {
  readonly resource: string;
  /** The contender id: `instanceId` + a secret random part. */
  readonly owner: string;
  readonly mode: LockMode;
}

/** What the store answers to an attempt. */
export type AcquireReply =
  | { readonly status: 'granted'; readonly fencingToken: number }
  /** Somebody else holds it. `ttlMs`: what is left of that lease. */
  | { readonly status: 'busy'; readonly ttlMs: number };

/** One holder of a resource, as an operator may see it: no secret. */
export interface LockHolder {
  /** Which process holds it: host, process id, and a few random characters, unless `instanceId` was set. */
  readonly instanceId: string;
  readonly fencingToken: number;
  /** What is left of its lease, in milliseconds, by the clock of Redis. */
  readonly ttlMs: number;
  /** How often a reentrant holder has entered; 1 otherwise. */
  readonly depth: number;
}

/** What Redis knows of one resource at one moment. */
export interface LockState {
  readonly resource: string;
  /** `null` where nobody holds it. */
  readonly mode: LockMode | null;
  readonly holders: readonly LockHolder[];
  /** When the lock ends unless it is renewed, in milliseconds; 0 where nobody holds it. */
  readonly ttlMs: number;
  /** The instances that wait for it and want to be woken, the one that is woken next first. */
  readonly waiters: readonly string[];
}

/**
 * An instance that waits asks again every second or so. One that has been silent for this long is taken for dead and is
 * not woken any more.
 */
export const WAITER_SILENCE_MS = 5_000;

/**
 * What core needs of a place that keeps locks. Every method is one atomic step there, and idempotent by owner: a command
 * that is sent again changes nothing twice. A rejection is a {@link LockStoreError}.
 */
export interface LockStore {
  /** The public part of every owner id made here. */
  readonly instanceId: string;
  /** Takes the resource if it is free, and mints its fencing token in the same step. `wait`: wake this instance later. */
  acquire(contender: Ownership, leaseMs: number, wait: boolean): Promise<AcquireReply>;
  /** Sets the depth of a reentrant holder, and gives it at least `leaseMs` more. `false`: not the owner any more. */
  setDepth(ownership: Ownership, depth: number, leaseMs: number): Promise<boolean>;
  /** Starts the lease anew. `false`: not the owner any more, and nothing was changed. */
  renew(ownership: Ownership, leaseMs: number): Promise<boolean>;
  /**
   * Frees the resource and wakes a waiter. `false`: not the owner, and no lock was changed. `leaveQueue`: this instance
   * waits no longer, so a wake-up meant for it goes to the next one.
   */
  release(ownership: Ownership, leaveQueue: boolean): Promise<boolean>;
  /** Whether this owner holds the resource now. */
  verify(ownership: Ownership): Promise<boolean>;
  inspect(resource: string): Promise<LockState>;
  /** Calls back when a resource that this instance waits for may be free; `undefined` when wake-ups may have been missed. */
  onWake(listener: (resource: string | undefined) => void): void;
  /** Stops using its connections. Calls after this reject. */
  close(): Promise<void>;
}

/**
 * How far a failed command got. `notExecuted`: nothing happened, try again. `unknown`: it may have happened, or may still.
 * `refused`: the store will never do it; tell the user.
 */
export type StoreFailure = 'notExecuted' | 'unknown' | 'refused';

/** What a {@link LockStore} rejects with. The message is safe to show: no arguments, no credentials. */
export class LockStoreError extends Error {
  override readonly name = 'LockStoreError';

  constructor(
    readonly failure: StoreFailure,
    message: string,
  ) {
    super(message);
  }
}

/** Any rejection of a store as a {@link LockStoreError}; one it did not sort counts as unknown. */
export function asStoreError(error: unknown): LockStoreError {
  if (error instanceof LockStoreError) return error;
  return new LockStoreError('unknown', error instanceof Error ? error.message : String(error));
}
