import type { LockMode, PermitRequest } from '../api/lock-options.js';

/** The identity of a lock in the store: only this owner may renew or release it. */
export interface LockOwner {
  readonly resource: string;
  /** The owner id: `instanceId` + a secret random part. */
  readonly id: string;
  readonly mode: LockMode;
  /** What it wants of a semaphore; not set in other modes. */
  readonly permits?: PermitRequest | undefined;
}

/** What the store answers to an attempt. */
export type AcquireReply =
  | { readonly status: 'granted'; readonly fencingToken: number }
  /**
   * Another holder has it, or waits for it. `ttlMs`: what is left of that lease. `isOpen`: that is not known yet. One
   * step of the store passes over so many only who have died; ask again at once.
   */
  | { readonly status: 'busy'; readonly ttlMs: number; readonly isOpen?: boolean }
  /** The same, and this waiter stands in the queue now. */
  | { readonly status: 'queued'; readonly ttlMs: number }
  /** The same, but the queue is as long as this waiter accepts: it was not added. */
  | { readonly status: 'full'; readonly ttlMs: number }
  /**
   * Not to be had like this: it is in use as something else, or as a semaphore of another size. The waiter was not
   * queued.
   */
  | { readonly status: 'mismatch'; readonly ttlMs: number; readonly found: FoundInUse };

/** What a resource is in use as. */
export interface FoundInUse {
  readonly mode: LockMode;
  /** How many permits a semaphore has; 1 in other modes. */
  readonly total: number;
}

/** How a waiter wants to wait. */
export interface Queueing {
  /**
   * When the command is sent, on the sender's monotonic clock. It comes back, rounded down, with a {@link PushedGrant}.
   */
  readonly sentAt: number;
  /** How many may wait for the resource at most, this one included. */
  readonly maxWaiters: number;
}

/** The result of passing a lock from one owner of this instance to the next waiter of this instance. */
export interface RotateReply {
  /** Whether the lock was the first one's until now. */
  readonly released: boolean;
  /** Or why the store cannot grant it, or not for certain; the first part was done all the same. */
  readonly next: AcquireReply | LockStoreError;
}

/**
 * The store has granted a resource to a waiter in its queue. It does not say to which: an owner id is a secret, and
 * others may listen.
 */
export interface PushedGrant {
  readonly resource: string;
  readonly fencingToken: number;
  /**
   * When the command was sent to which this grant owes its length: the lease counts from there. `-Infinity`: it does
   * not count before it was asked for once more.
   */
  readonly sentAt: number;
  /** Whether it was granted to this owner, with this very token and stamp. Only the store and the owner can tell. */
  readonly isFor: (owner: string) => boolean;
}

/** Who hears of grants. */
export interface GrantListener {
  granted(grant: PushedGrant): void;
  /** The connection is new: grants may have been missed. */
  reconnected(): void;
}

/** One holder of a resource, as an operator may see it: no secret. */
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
}

/** One who waits for a resource in the queue in Redis: a call of that process, and all that stand behind it there. */
export interface LockWaiter {
  readonly instanceId: string;
  readonly mode: LockMode;
  /** How many permits of a semaphore it waits for; not set in other modes. */
  readonly permits?: number;
}

/** What Redis knows of one resource at one moment. */
export interface LockState {
  readonly resource: string;
  /** `null` if the resource is free. */
  readonly mode: LockMode | null;
  /** One, or none; several readers, or holders of permits, in the order of their tokens. */
  readonly holders: readonly LockHolder[];
  /** When the last of the leases ends unless it is renewed, in milliseconds; 0 if it is free. */
  readonly ttlMs: number;
  /** A semaphore in use: how many permits there are, and how many of them are free. Not set in other modes. */
  readonly permits?: { readonly total: number; readonly available: number };
  /**
   * Who waits in the queue, the one that is granted next first. The instance that asks is the last of them where its
   * calls wait for a holder of its own.
   */
  readonly waiters: readonly LockWaiter[];
}

/** How a lease passes from one owner to the next. */
export interface Transfer {
  /** The owner id that holds it from now on. */
  readonly to: string;
  readonly leaseMs: number;
  /** The token to keep; the one that the store knows when it is left out. */
  readonly fencingToken?: number;
  /** Whether the first owner stays: a reader whose other leases go on. Where one holds the lock alone, it is refused. */
  readonly share?: boolean;
}

/**
 * What core needs of a place that keeps locks. Every method is one atomic step there, and idempotent by owner: a command
 * that is sent again changes nothing twice. A rejection is a {@link LockStoreError}.
 */
export interface LockStore {
  /** How this process is called where holders are shown. */
  readonly instanceId: string;
  /**
   * What every owner id made here begins with: the instance, and something that no other store shares, whatever
   * instances are called. Grants are told to the one store whose it is.
   */
  readonly clientId: string;
  /** Why this kind of store keeps no semaphores, with the way out; nothing where it keeps them. */
  readonly noSemaphores?: string;
  /**
   * Takes the resource if it is free and the queue is empty, and mints its fencing token in the same step. With
   * `queueing`: otherwise it joins the end of the queue, or keeps its place there, for `leaseMs` from now.
   */
  acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply>;
  /** Releases the one and acquires for the next, who waits behind all others, in one step. */
  rotate(owner: LockOwner, waiter: LockOwner, leaseMs: number, queueing: Queueing): Promise<RotateReply>;
  /**
   * Sets the depth of a reentrant holder or a writer, and gives it at least `leaseMs` more. `false`: not the owner any
   * more.
   */
  setDepth(owner: LockOwner, depth: number, leaseMs: number): Promise<boolean>;
  /**
   * Starts the lease anew. It never gets shorter by that, unless `exactly` is set. `false`: not the owner any more, and
   * nothing was changed.
   */
  renew(owner: LockOwner, leaseMs: number, exactly?: boolean): Promise<boolean>;
  /**
   * Leaves the queue, and if this owner holds the resource, grants it to the first in the queue who is alive, or frees
   * it. `false`: not the owner, and no lock was changed. `lazily`: no caller waits for the answer, so it may leave
   * together with what is sent next.
   */
  release(owner: LockOwner, lazily?: boolean): Promise<boolean>;
  /** Whether this owner holds the resource now. */
  verify(owner: LockOwner): Promise<boolean>;
  /**
   * Makes a writer a reader, in place and with its token, and grants the readers who are next. It gets at least
   * `leaseMs` more. `false`: not the owner any more.
   */
  downgrade(owner: LockOwner, leaseMs: number): Promise<boolean>;
  /**
   * The token of this owner's lease, and of all that are minted after it, is at least this one from now on. `false`: not
   * the owner any more.
   */
  raiseToken(owner: LockOwner, fencingToken: number): Promise<boolean>;
  /**
   * Makes another owner id the holder. Returns the fencing token, or `null` where the first one is not the owner any more.
   */
  transfer(owner: LockOwner, transfer: Transfer): Promise<number | null>;
  /**
   * Sets how many permits a semaphore that is in use has, and grants those who are next. `false`: the resource is in
   * use as something else.
   */
  resize(resource: string, total: number): Promise<boolean>;
  /** What numbers the leases of a resource. The tokens of all resources with the same one grow in one order. */
  fenceOf(resource: string): string;
  /** Why nothing can be asked about a resource at this moment, where the store knows that without asking. */
  trouble(resource: string): LockStoreError | undefined;
  inspect(resource: string): Promise<LockState>;
  /**
   * The resources that are held or waited for whose names begin like this, at most so many, in no order. Until `signal`
   * aborts.
   */
  list(prefix: string, limit: number, signal?: AbortSignal): Promise<string[]>;
  /**
   * Ends the lease with this fencing token, whichever owner has it, and grants the next waiter. `false`: there is none.
   */
  forceRelease(resource: string, fencingToken: number): Promise<boolean>;
  /**
   * Tells the listener of grants to owners of this instance, and of messages that look like one. A store has one
   * listener.
   *
   * @throws Error if it has one already
   */
  listen(listener: GrantListener): void;
  /** Closes its connections, and resolves when they are. Calls after this reject. */
  close(): Promise<void>;
}

/**
 * How far a failed command got. `notExecuted`: nothing happened, try again. `unknown`: it may have happened, or may
 * still.
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

/** For what is asked of a store after it was closed: no later try will be answered. */
export function closedStore(): LockStoreError {
  return new LockStoreError('refused', 'this lock service is closed, because its application has shut down');
}

/**
 * The one listener of a store.
 *
 * @throws Error if there is one already
 */
export function onlyListener<T>(present: T | undefined, next: T): T {
  if (present !== undefined) throw new Error('this store already has a listener');
  return next;
}

/** Any rejection of a store as a {@link LockStoreError}; one it did not sort counts as unknown. */
export function asStoreError(error: unknown): LockStoreError {
  if (error instanceof LockStoreError) return error;
  return new LockStoreError('unknown', error instanceof Error ? error.message : String(error));
}
