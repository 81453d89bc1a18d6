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
   * The owner id: `instanceId` + a secret random part. Where only the newest call counts, it ends with `~`, if a newer
   * call may end this one, and then with `!`, if this one ends older ones.
   */
  readonly id: string;
  readonly mode: LockMode;
  /** The permits it wants of a semaphore; not set in other modes. */
  readonly permits?: PermitRequest | undefined;
  /** What is stored with its place in the queue, and with what it is granted. Only set where it has a label. */
  readonly label?: string | undefined;
}

/** The end of an owner id, or before {@link SUPERSEDES}, whose call a newer one may end. In mode `exclusive` only. */
export const YIELDS = '~';
/**
 * The end of an owner id whose call ends older ones. Whenever such a waiter has joined the queue, or has asked again from
 * there, the store tells the holder and the waiters before it: those with {@link YIELDS}, by a
 * {@link HolderNotice}. Nothing is taken from them. A store that cannot do that says so by `noSuperseding`.
 */
export const SUPERSEDES = '!';

/**
 * The store's answer to an attempt. `seen`: the holders, if the store can tell them without another command. A list of
 * many is a sample.
 */
export type AcquireReply =
  | { readonly status: 'granted'; readonly fencingToken: number }
  /**
   * Another owner holds it or waits for it. `ttlMs`: what is left of that lease. `isOpen`: not known yet, because one
   * step of the store skips only a limited number of dead waiters. Ask again at once.
   */
  | { readonly status: 'busy'; readonly ttlMs: number; readonly seen?: Holders; readonly isOpen?: boolean }
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

/** What a waiter learns of its place in the queue. */
export interface QueuedPlace {
  /** What is left of the holder's lease. */
  readonly ttlMs: number;
  readonly seen?: Holders | undefined;
  /** How many waiters stood there up to this one, where the store can tell. Waiters that have died may count. */
  readonly place?: number;
  /**
   * When the first of all places in the queue is over unless it is kept, in milliseconds from now, where the store can
   * tell. A grant lasts for what is left of a place: so a waiter that is granted and dies has lost the resource by then.
   * Where readers hold it, no later than the lease of the first of them ends: it may be the only one that is left.
   */
  readonly soonestMs?: number;
  /** Set to 1 where the holder was told that a newer call wants the resource: see {@link SUPERSEDES}. */
  readonly told?: number;
}

/** A place in the queue that its waiter keeps. */
export interface KeptPlace {
  readonly waiter: LockOwner;
  readonly leaseMs: number;
  /** Where it was when that was last known, counted from 1. The store may look there first. */
  readonly lastPlace?: number | undefined;
}

/** What has become of a place. An error concerns this place alone. */
export type KeepReply =
  | ({ readonly status: 'kept' } & QueuedPlace)
  /** The place is not there any more, or nothing holds the resource: the waiter has to ask. */
  | { readonly status: 'ask' }
  | LockStoreError;

/** How many places one step of a store keeps at most. */
export const KEPT_AT_ONCE = 64;

/** How a resource is in use. */
export interface ModeConflict {
  readonly mode: LockMode;
  /** How many permits a semaphore has; 1 in other modes. */
  readonly total: number;
}

/** How a waiter wants to wait. */
export interface Queueing {
  /** When the command is sent, on the sender's monotonic clock. A {@link PushedGrant} returns it, rounded down. */
  readonly sentAt: number;
  /**
   * The maximum number of waiters for the resource, including this one. 0: it does not join the queue, and keeps the place
   * that it has there.
   */
  readonly maxWaiters: number;
  /** Only set for a call that ends older ones; see {@link SUPERSEDES}. */
  readonly age?: CallAge;
}

/**
 * What says which of the calls that end older ones is the newest: the one that began last, and not the one whose command
 * came last. One that joins after a newer one is not added. The time that the command takes to the store is not known.
 */
export interface CallAge {
  /** How long ago the call began, in whole milliseconds by the clock of its process. */
  readonly ageMs: number;
  /** For how long the store compares later ones with it. By then, older ones with its `waitMs` have given up. */
  readonly keepMs: number;
}

/** The result of passing a lock from one owner of this instance to the next waiter of this instance. */
export interface RotateReply {
  /** Whether the first owner still held the lock. */
  readonly released: boolean;
  /** The answer to the next waiter. With an error, the first owner's release was executed all the same. */
  readonly next: AcquireReply | LockStoreError;
}

/** How long a lock stays taken after its holder has released it. */
export interface Retention {
  /** Counted from the grant, by the clock of the store. A quorum leaves it out at its nodes: then `leftMs` alone decides. */
  readonly minHoldMs?: number;
  /** No more than this can be left of it, as the process knows. */
  readonly leftMs: number;
}

/**
 * What core needs from a store of locks. Every method is one atomic step and idempotent by owner: a command that is
 * sent again changes nothing twice. A rejection is a {@link LockStoreError}.
 */
export interface LockStore extends WatchStore {
  /** The name of this process where holders are shown. */
  readonly instanceId: string;
  /**
   * What every owner id of this store begins with: the instance id, and a part that is unique even if instance ids are
   * not. Each grant is sent to the one store with this client id.
   */
  readonly clientId: string;
  /**
   * Where the locks are, such as a server, a database and a prefix: the same text in every process that has the same
   * locks, and another one for other locks. It may name a server, so it is shown nowhere.
   *
   * @default ''
   */
  readonly location?: string;
  /** Why this kind of store has no semaphores, and what to do instead. Not set if it has them. */
  readonly noSemaphores?: string;
  /** Why this kind of store tells no holder of a newer call, and what to do instead. Not set if it does. */
  readonly noSuperseding?: string;
  /** How all instances are asked. A store without it has no `locks.fleet()`. */
  readonly rollCalls?: RollCalls;
  /** Why this kind of store has none, and what to do instead. Not set if it has them. */
  readonly noRollCalls?: string;
  /**
   * Takes the resource if it is free and the queue is empty, and mints its fencing token in the same step. Otherwise,
   * with `queueing`, the waiter joins the end of the queue, or keeps its place there, for `leaseMs` from now.
   */
  acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply>;
  /** Whether messages arrive. A store that cannot tell leaves it out: its waiters ask every second. */
  readonly hearing?: MessageHealth;
  /**
   * Keeps places in queues: each lasts for its `leaseMs` from now. Nothing else changes: no waiter joins a queue, and no
   * resource is granted. So it does no harm if it is executed late. A store without it is asked for each place alone.
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
   * Starts the lease anew. It never gets shorter, unless `exactly` is set.
   *
   * @returns false if the owner no longer holds it; then nothing was changed
   */
  renew(owner: LockOwner, leaseMs: number, exactly?: boolean): Promise<boolean>;
  /**
   * Removes this owner from the queue. If it holds the resource, grants it to the first living waiter, or frees it.
   *
   * @param lazily no caller waits for the answer, so the command may leave together with the next one
   * @returns false if this owner did not hold it; then no lock was changed
   */
  release(owner: LockOwner, lazily?: boolean): Promise<boolean>;
  /**
   * The same, but a resource that this owner holds stays taken until the retention is over. No owner holds it then, and
   * no command but `forceRelease` ends it. The first waiters are told when it is over.
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
  /** Whether this owner holds the resource now. */
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
  /** Why the store cannot be asked about a resource now, if it knows that without a command. */
  trouble(resource: string): LockStoreError | undefined;
  inspect(resource: string): Promise<LockState>;
  /**
   * Tries on every server that is needed whether a lock could be taken now, and leaves nothing behind. Sends nothing to
   * a server that has not answered the last probe. Never throws.
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
   * Sets the one listener of this store. It hears of grants to owners of this instance, of messages that look like
   * grants, and of watched resources that are free.
   *
   * @throws Error if it has one already
   */
  listen(listener: StoreListener): void;
  /** Closes the connections and resolves when they are closed. Later calls reject. */
  close(): Promise<void>;
}
