import type { LockMode, PermitRequest } from '../api/lock-options.js';
import type { MessageHealth, RollCalls, StoreListener } from './message-health.js';
import type { LockState } from './lock-state.js';
import type { LockStoreError } from './store-error.js';
import type { WatchStore } from './watch-store.js';
import type { StoreProbe } from './store-probe.js';
import type { Holders } from '../api/holder.js';

/** The identity of a lock in the store: only this owner may renew or release it. */
export interface LockOwner {
  readonly resource: string;
  /**
   * The owner id: `instanceId` + a secret random part. If only the newest call counts, it ends with `~`, if a newer
   * call may cancel this one, and then with `!`, if this one cancels older ones.
   */
  readonly id: string;
  readonly mode: LockMode;
  /** The permits it wants of a semaphore; not set in other modes. */
  readonly permits?: PermitRequest | undefined;
  /** Stored with its place in the queue, and with its grant. Only set if it has a label. */
  readonly label?: string | undefined;
}

/** The end of an owner id, or before {@link SUPERSEDES}, whose call a newer one may end. In mode `exclusive` only. */
export const YIELDS = '~';
/**
 * The end of an owner id whose call cancels older ones. Whenever such a waiter joins the queue, or asks again from
 * there, the store notifies the holder and the waiters before it that have {@link YIELDS}, by a {@link PushedNotice}.
 * Nothing is taken from them. A store that cannot do that has `noSuperseding`.
 */
export const SUPERSEDES = '!';

/**
 * The store's answer to an attempt. `seen`: the holders, if the store has them without another command. A list of many
 * is a sample.
 */
export type AcquireReply =
  | { readonly status: 'granted'; readonly fencingToken: number }
  /**
   * Another owner holds it or waits for it. `ttlMs`: the rest of that lease. `inconclusive`: not known yet, because one
   * step of the store skips only a limited number of dead waiters. Ask again at once.
   */
  | { readonly status: 'busy'; readonly ttlMs: number; readonly seen?: Holders; readonly inconclusive?: boolean }
  /**
   * The same, and this waiter is in the queue now.
   */
  | ({ readonly status: 'queued' } & QueuedPlace)
  /**
   * The same, but the queue already has `maxWaiters` waiters: this one was not added. `newer`: the instance of a newer
   * call, for which this one was not added; see {@link CallAge}.
   */
  | { readonly status: 'full'; readonly ttlMs: number; readonly seen?: Holders; readonly newer?: string }
  /** It is in use in a mode that does not fit, or as a semaphore of another size. The waiter was not queued. */
  | { readonly status: 'mismatch'; readonly ttlMs: number; readonly found: ModeConflict };

export interface QueuedPlace {
  /** The rest of the holder's lease. */
  readonly ttlMs: number;
  readonly seen?: Holders | undefined;
  /** The number of waiters up to this one, if the store knows it. Waiters that have died may count. */
  readonly place?: number;
  /**
   * Milliseconds until the first place in the queue expires unless it is kept, if the store knows it. A grant lasts for
   * the rest of a place, so a waiter that is granted and dies has lost the resource by then. With readers, it is no
   * later than the end of the first reader's lease: that may be the only one left.
   */
  readonly soonestMs?: number;
  /** Set to 1 if the holder was notified that a newer call wants the resource: see {@link SUPERSEDES}. */
  readonly told?: number;
}

export interface KeptPlace {
  readonly waiter: LockOwner;
  readonly leaseMs: number;
  /** Its last known place, counted from 1. The store may look there first. */
  readonly lastPlace?: number | undefined;
}

/** The state of a place. An error concerns this place alone. */
export type KeepReply =
  | ({ readonly status: 'kept' } & QueuedPlace)
  /** The place no longer exists, or nothing holds the resource: the waiter has to ask. */
  | { readonly status: 'ask' }
  | LockStoreError;

/** The maximum number of places that one step of a store keeps, and of leases that it renews. */
export const PER_STEP = 64;

export interface ModeConflict {
  readonly mode: LockMode;
  /** The number of permits of a semaphore; 1 in other modes. */
  readonly total: number;
}

export interface Queueing {
  /** When the command is sent, on the sender's monotonic clock. A {@link PushedGrant} returns it, rounded down. */
  readonly sentAt: number;
  /**
   * The maximum number of waiters for the resource, including this one. 0: it does not join the queue, and keeps the
   * place that it has there.
   */
  readonly maxWaiters: number;
  /** Only set for a call that cancels older calls; see {@link SUPERSEDES}. */
  readonly age?: CallAge;
}

/**
 * Decides which of the calls that cancel older ones is the newest: the one that began last, not the one whose command
 * came last. One that joins after a newer one is not added. The time that the command takes to the store is unknown.
 */
export interface CallAge {
  /** The age of the call in whole milliseconds, by the clock of its process. */
  readonly ageMs: number;
  /**
   * The time for which the store compares later calls with it. By then, older calls with the same `waitMs` have given
   * up.
   */
  readonly ttlMs: number;
}

/** The result of passing a lock from one owner of this instance to the next waiter of this instance. */
export interface RotateReply {
  readonly released: boolean;
  /** The answer to the next waiter. With an error, the first owner's release was executed all the same. */
  readonly next: AcquireReply | LockStoreError;
}

/** The time for which a lock stays taken after its holder has released it. */
export interface Retention {
  /**
   * Counted from the grant, by the clock of the store. A quorum leaves it out at its nodes: then `leftMs` alone
   * decides.
   */
  readonly minHoldMs?: number;
  /** No more than this can be left of it, as the process knows. */
  readonly leftMs: number;
}

/**
 * The store of locks that core needs. Every method is one atomic step and idempotent by owner: a command that is sent
 * again changes nothing twice. A rejection is a {@link LockStoreError}.
 */
export interface LockStore extends WatchStore {
  /** The name of this process in lists of holders. */
  readonly instanceId: string;
  /**
   * The start of every owner id of this store: the instance id, and a part that is unique even if instance ids are not.
   * Each grant is sent to the one store with this client id.
   */
  readonly clientId: string;
  /**
   * The location of the locks, such as a server, a database and a prefix: equal in every process with the same locks,
   * and different for other locks. It may name a server, so it is shown nowhere.
   *
   * @default ''
   */
  readonly location?: string;
  /** The reason why this kind of store has no semaphores, and the alternative. Not set if it has them. */
  readonly noSemaphores?: string;
  /** The reason why this kind of store notifies no holder of a newer call, and the alternative. Not set if it does. */
  readonly noSuperseding?: string;
  /** Asks all instances. A store without it has no `locks.fleet()`. */
  readonly rollCalls?: RollCalls;
  /** The reason why this kind of store has no roll calls, and the alternative. Not set if it has them. */
  readonly noRollCalls?: string;
  /**
   * Takes the resource if it is free and the queue is empty, and mints its fencing token in the same step. Otherwise,
   * with `queueing`, the waiter joins the end of the queue, or keeps its place there, for `leaseMs` from now.
   */
  acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply>;
  /** The health of its messages. A store that does not know leaves it out: its waiters ask every second. */
  readonly hearing?: MessageHealth;
  /**
   * Keeps places in queues: each lasts for its `leaseMs` from now. Nothing else changes: no waiter joins a queue, and
   * no resource is granted. So it does no harm if it is executed late. A store without it is asked for each place
   * alone.
   *
   * @param places at most 64, with one fence
   * @param sentAt when the command is sent, on the sender's monotonic clock
   * @returns one reply for each place, in their order
   */
  keepPlaces?(places: readonly KeptPlace[], sentAt: number): Promise<readonly KeepReply[]>;
  /** Releases the lock of `owner` and acquires it for `waiter`, which goes to the end of the queue, in one step. */
  rotate(owner: LockOwner, waiter: LockOwner, leaseMs: number, queueing: Queueing): Promise<RotateReply>;
  /**
   * Sets the depth of a reentrant holder or a writer. Its lease then lasts at least `leaseMs` from now.
   *
   * @returns false if the owner no longer holds it
   */
  setDepth(owner: LockOwner, depth: number, leaseMs: number): Promise<boolean>;
  /**
   * Renews the lease. It never gets shorter, unless `exactly` is set. Otherwise the renewals of one turn of the event
   * loop share a step, up to 64 with one fence; an error of one of them does not concern the others.
   *
   * @returns false if the owner no longer holds it; then nothing was changed
   */
  renew(owner: LockOwner, leaseMs: number, exactly?: boolean): Promise<boolean>;
  /**
   * Removes this owner from the queue. If it holds the resource, grants it to the first live waiter, or frees it.
   *
   * @param lazily no caller waits for the answer, so the command may leave together with the next one
   * @returns false if this owner did not hold it; then no lock was changed
   */
  release(owner: LockOwner, lazily?: boolean): Promise<boolean>;
  /**
   * The same, but a resource that this owner holds stays taken until the retention has passed. No owner holds it then,
   * and no command but `forceRelease` ends it. The first waiters are notified of its end.
   *
   * @returns false if this owner did not hold it; then no lock was changed
   */
  retain(owner: LockOwner, retention: Retention, lazily?: boolean): Promise<boolean>;
  /**
   * Stores another label of this owner, or none. The lease stays as it is.
   *
   * @param lazily no caller waits for the answer, so the command may leave together with the next one
   * @returns false if this owner does not hold the resource; then nothing was changed
   */
  label(owner: LockOwner, label: string | undefined, lazily?: boolean): Promise<boolean>;
  verify(owner: LockOwner): Promise<boolean>;
  /**
   * Makes a writer a reader, in place and with its token, and grants the readers that are next. Its lease then lasts at
   * least `leaseMs` from now.
   *
   * @returns false if the owner no longer holds it
   */
  downgrade(owner: LockOwner, leaseMs: number): Promise<boolean>;
  /**
   * From now on, the token of this owner's lease and all tokens minted later are at least this one.
   *
   * @returns false if the owner no longer holds it
   */
  raiseToken(owner: LockOwner, fencingToken: number): Promise<boolean>;
  /**
   * Leaves this owner at most so many permits of its semaphore, and grants the waiters that now fit. It never gets more
   * than it has.
   *
   * @returns false if the owner no longer holds it
   */
  lowerPermits(owner: LockOwner, count: number): Promise<boolean>;
  /**
   * Sets the number of permits of a semaphore in use, and grants the waiters that now fit.
   *
   * @returns false if the resource is in use in another mode
   */
  resize(resource: string, total: number): Promise<boolean>;
  /**
   * The counter that numbers the leases of a resource. The tokens of all resources with one counter grow in one order.
   */
  fenceOf(resource: string): string;
  /** Returns the reason why the store cannot be asked about a resource now, if it knows that without a command. */
  trouble(resource: string): LockStoreError | undefined;
  inspect(resource: string): Promise<LockState>;
  /**
   * Checks with a write, which leaves nothing behind, whether a lock could be taken now: on the primary, on each primary
   * of a cluster, or on each node of a quorum. Sends nothing to a server that has not answered the last probe. Never
   * throws.
   */
  probe(): StoreProbe;
  /**
   * Lists at most `limit` resources that are held or waited for and begin with `prefix`, in no order. Stops when
   * `signal` aborts.
   */
  list(prefix: string, limit: number, signal?: AbortSignal): Promise<string[]>;
  /**
   * Ends the lease with this fencing token, for any owner, and grants the next waiter.
   *
   * @returns false if there is no such lease
   */
  forceRelease(resource: string, fencingToken: number): Promise<boolean>;
  /**
   * Sets the one listener of this store. It receives grants to owners of this instance, messages that look like grants,
   * and watched resources that are free.
   *
   * @throws Error if it has one already
   */
  listen(listener: StoreListener): void;
  /** Closes the connections and resolves when they are closed. Later calls reject. */
  close(): Promise<void>;
}
