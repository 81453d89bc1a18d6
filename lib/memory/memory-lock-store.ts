import { fencingTickOf } from '../core/store/fencing-token.js';
import type { MemoryLock, MemoryMember } from './memory-lock.js';
import { keptId, MemoryServer, readState } from './memory-server.js';
import { closedProbe, type StoreProbe } from '../core/store/store-probe.js';
import type { Watcher, WatchReply } from '../core/store/watch-store.js';
import type {
  AcquireReply,
  KeepReply,
  KeptPlace,
  LockStore,
  LockOwner,
  QueuedPlace,
  Queueing,
  Retention,
  RotateReply,
  SeveralReply,
  Transfer,
} from '../core/store/lock-store.js';
import { closedStore } from '../core/store/store-error.js';
import { type Hearing, onlyListener, type StoreListener } from '../core/store/hearing.js';
import type { LockState } from '../core/store/lock-state.js';

export interface MemoryLockStoreOptions {
  /** Must differ between the stores of one server. */
  readonly instanceId: string;
  /** Where the locks are. Stores that share one compete, as instances on one Redis do. @default a server of its own */
  readonly server?: MemoryServer;
  /** What its owner ids begin with; the same for one client's stores on several servers. @default one of its own */
  readonly clientId?: string;
}

/** Within one process no message is lost. */
const HEARS_ALL: Hearing = { quietMs: Infinity, silentSince: undefined, rely: () => {} };

let clients = 0;

/**
 * Locks in the memory of **one process**, with the rules of the Redis scripts: expiry, fencing tokens, queues. For
 * tests of an application that run without Redis. It does not protect against other processes: never use it for an
 * application with several instances.
 */
export class MemoryLockStore implements LockStore {
  readonly instanceId: string;
  readonly clientId: string;
  readonly hearing = HEARS_ALL;
  readonly #server: MemoryServer;
  readonly #closeInbox: () => void;
  #listener: StoreListener | undefined;
  #isClosed = false;

  constructor({ instanceId, server = new MemoryServer(), clientId }: MemoryLockStoreOptions) {
    this.instanceId = instanceId;
    this.clientId = clientId ?? `${instanceId}/${++clients}`;
    this.#server = server;
    this.#closeInbox = server.openInbox(this.clientId, {
      granted: (grant) => this.#listener?.granted(grant),
      retained: (notice) => this.#listener?.retained?.(notice),
      freed: (message) => this.#listener?.freed?.(message),
      opened: (name, count) => this.#listener?.opened?.(name, count),
    });
  }

  async acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
    return this.#acquire(waiter, leaseMs, queueing);
  }

  async acquireSeveral(
    [first, ...others]: readonly LockOwner[],
    leaseMs: number,
    queueing?: Queueing,
  ): Promise<SeveralReply> {
    const reply = this.#acquire(first!, leaseMs, queueing);
    const laterTokens: number[] = [];
    for (const other of reply.status === 'granted' ? others : []) {
      const next = this.#acquire(other, leaseMs, undefined);
      if (next.status !== 'granted') break;
      laterTokens.push(next.fencingToken);
    }
    return { first: reply, laterTokens };
  }

  async keepPlaces(places: readonly KeptPlace[], sentAt: number): Promise<readonly KeepReply[]> {
    return places.map((place) => this.#keep(place, sentAt));
  }

  async rotate(owner: LockOwner, waiter: LockOwner, leaseMs: number, queueing: Queueing): Promise<RotateReply> {
    return { released: this.#release(owner, true), next: this.#acquire(waiter, leaseMs, queueing, true) };
  }

  async setDepth(owner: LockOwner, depth: number, leaseMs: number): Promise<boolean> {
    const held = this.#held(owner);
    if (held?.lock.mode !== 'reentrant' && held?.lock.mode !== 'write') return false;
    held.lock.lengthen({ ...held.member, depth }, leaseMs);
    return true;
  }

  async renew(owner: LockOwner, leaseMs: number, exactly = false): Promise<boolean> {
    const held = this.#held(owner);
    if (!held) return false;
    if (exactly) {
      this.#tellOfEnd(owner, held.lock, leaseMs);
      held.lock.put(held.member, leaseMs);
    } else held.lock.lengthen(held.member, leaseMs);
    return true;
  }

  /** Tells the first waiters of an end that is sooner: they have planned their next question by the lease as it was. */
  #tellOfEnd({ resource, id }: LockOwner, lock: MemoryLock, leaseMs: number): void {
    if (leaseMs < lock.ttlMs(id)) this.#server.tellFirstWaiters(resource, leaseMs);
  }

  async release(owner: LockOwner): Promise<boolean> {
    return this.#release(owner);
  }

  async retain(owner: LockOwner, { minHoldMs = Infinity, leftMs }: Retention): Promise<boolean> {
    const server = this.connected();
    const { resource } = owner;
    const kept = keptId(owner.id);
    const isKept = this.#held({ ...owner, id: kept }) !== undefined;
    const held = this.#held(owner);
    if (isKept || !held) return this.#release(owner) || isKept; // where it is kept, the command was sent again
    const { lock, member } = held;
    const left = Math.min(leftMs, member.grantedAt + minHoldMs - server.clock.now());
    if (left <= 0) return this.#release(owner);
    lock.remove(owner.id);
    lock.put({ ...member, owner: kept, depth: 1 }, left, 0);
    server.tellFirstWaiters(resource, left);
    return true;
  }

  async label(owner: LockOwner, label: string | undefined): Promise<boolean> {
    const held = this.#held(owner);
    held?.lock.replace({ ...held.member, label });
    return held !== undefined;
  }

  async verify(owner: LockOwner): Promise<boolean> {
    return this.#held(owner) !== undefined;
  }

  async downgrade(owner: LockOwner, leaseMs: number): Promise<boolean> {
    const held = this.#held(owner);
    if (held?.lock.mode !== 'write' && held?.lock.mode !== 'read') return false;
    const { lock, member } = held;
    lock.lengthen({ ...member, depth: 1 }, leaseMs);
    if (lock.mode === 'read') return true; // the command was sent again
    lock.downgrade();
    this.#server.grantWaiting(owner.resource);
    return true;
  }

  async raiseToken(owner: LockOwner, fencingToken: number): Promise<boolean> {
    const held = this.#held(owner);
    this.connected().raiseTick(fencingTickOf(fencingToken));
    if (held && held.member.fencingToken < fencingToken) held.lock.replace({ ...held.member, fencingToken });
    return held !== undefined;
  }

  async transfer(owner: LockOwner, transfer: Transfer): Promise<number | null> {
    const { to, leaseMs, fencingToken, share } = transfer;
    const next = this.#held({ ...owner, id: to });
    if (next) {
      // The command was sent again.
      next.lock.lengthen(next.member, leaseMs);
      return next.member.fencingToken;
    }
    const held = this.#held(owner);
    if (!held) return null;
    const { lock, member } = held;
    if (share && !lock.isShared) return null;
    this.#tellOfEnd(owner, lock, leaseMs);
    if (!share || lock.mode !== 'read') lock.remove(owner.id);
    const token = fencingToken ?? member.fencingToken;
    const label = (transfer.label ?? member.label) || undefined;
    lock.put({ ...member, owner: to, fencingToken: token, depth: 1, label }, leaseMs);
    return token;
  }

  async lowerPermits(owner: LockOwner, count: number): Promise<boolean> {
    const held = this.#held(owner);
    if (held?.lock.mode !== 'semaphore') return false;
    held.lock.replace({ ...held.member, permits: Math.min(held.member.permits, count) });
    this.#server.grantWaiting(owner.resource);
    return true;
  }

  async resize(resource: string, total: number): Promise<boolean> {
    const server = this.connected();
    const lock = server.locks.get(resource);
    if (!lock) return true;
    if (lock.mode !== 'semaphore') return false;
    lock.resize(total);
    server.grantWaiting(resource);
    return true;
  }

  async watch(watcher: Watcher, watchMs: number): Promise<WatchReply> {
    const server = this.connected();
    const isFree = server.watch(watcher, watchMs);
    const lock = server.locks.get(watcher.resource);
    return lock ? { isFree, ttlMs: lock.lastEndMs, seen: lock.seenBy(this.clientId) } : { isFree, ttlMs: 0 };
  }

  fenceOf(): string {
    return 'fence';
  }

  trouble(): undefined {}

  async inspect(resource: string): Promise<LockState> {
    return readState(this.connected(), resource, this.clientId);
  }

  probe(): StoreProbe {
    if (this.#isClosed) return closedProbe('memory');
    return {
      topology: 'memory',
      needed: 1,
      servers: [Promise.resolve({ roundTripMs: 0, problems: [] })],
      problems: [],
    };
  }

  async list(prefix: string, limit: number): Promise<string[]> {
    const resources = this.connected().resources();
    return resources.filter((resource) => resource.startsWith(prefix)).slice(0, limit);
  }

  async forceRelease(resource: string, fencingToken: number): Promise<boolean> {
    const server = this.connected();
    const members = server.locks.get(resource)?.members() ?? [];
    // The member with exactly this token, or else the one in the same fencing tick.
    const meant =
      members.find((member) => member.fencingToken === fencingToken) ??
      members.find((member) => fencingTickOf(member.fencingToken) === fencingTickOf(fencingToken));
    const left = meant && server.locks.remove(resource, meant.owner);
    if (left) server.grantWaiting(resource, undefined, left);
    return left !== undefined;
  }

  /** Its server. @throws LockStoreError when this store is closed */
  connected(): MemoryServer {
    if (this.#isClosed) throw closedStore();
    return this.#server;
  }

  listen(listener: StoreListener): void {
    this.#listener = onlyListener(this.#listener, listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closeInbox();
  }

  #acquire(waiter: LockOwner, leaseMs: number, queueing: Queueing | undefined, isPassedOn?: boolean): AcquireReply {
    const server = this.connected();
    const { resource, id: owner, mode, permits, label } = waiter;
    const { locks, queues, clock } = server;
    const held = this.#held(waiter);
    if (held) {
      // It was granted before: the lease starts anew and nothing else changes.
      queues.leave(resource, owner);
      held.lock.lengthen(held.member, leaseMs);
      return { status: 'granted', fencingToken: held.member.fencingToken };
    }
    // Waiters are served before this call, also after a holder that died.
    const standing = locks.get(resource);
    if (!standing || standing.isShared) server.grantWaiting(resource, owner, undefined, isPassedOn);
    const lock = locks.get(resource);
    const ttlMs = locks.ttlMs(resource);
    if (lock?.isMismatch(waiter)) {
      queues.leave(resource, owner);
      return { status: 'mismatch', ttlMs, found: lock.found };
    }
    const first = queues.first(resource);
    const isNext = first === undefined || first.owner === owner;
    if (!lock || (isNext && lock.admits(waiter))) {
      queues.leave(resource, owner);
      return { status: 'granted', fencingToken: server.take(waiter, leaseMs) };
    }
    const seen = lock.seenBy(this.clientId);
    if (!queueing) return { status: 'busy', ttlMs, seen };
    const isFull = queues.length(resource) >= queueing.maxWaiters;
    if (isFull && !queues.has(resource, owner)) return { status: 'full', ttlMs, seen };
    const sentAt = Math.floor(queueing.sentAt);
    queues.join(resource, { owner, mode, permits, label, leaseMs, expiresAt: clock.now() + leaseMs, sentAt });
    const place = this.#placeOf(waiter, lock);
    lock.acceptTotal(waiter);
    // The new total may admit waiters before it.
    if (permits?.isResized) server.grantWaiting(resource);
    return { status: 'queued', ...place, ttlMs, seen };
  }

  #keep({ waiter, leaseMs }: KeptPlace, sentAt: number): KeepReply {
    const { queues, locks, clock } = this.connected();
    const { resource, id: owner } = waiter;
    const [place, lock] = [queues.find(resource, owner), locks.get(resource)];
    if (!place || !lock || lock.isMismatch(place)) return { status: 'ask' };
    // It may be granted the lock, by a command of its own.
    if (lock.admits(place) && queues.alive(resource)[0] === place) return { status: 'ask' };
    queues.join(resource, { ...place, leaseMs, expiresAt: clock.now() + leaseMs, sentAt: Math.floor(sentAt) });
    return { status: 'kept', ...this.#placeOf(waiter, lock) };
  }

  #placeOf({ resource, id }: LockOwner, lock: MemoryLock): QueuedPlace {
    const { queues, locks } = this.#server;
    const place = queues.place(resource, id);
    const soonestMs = Math.min(queues.soonestMs(resource), lock.mode === 'read' ? lock.firstEndMs : Infinity);
    return { ttlMs: locks.ttlMs(resource), seen: lock.seenBy(this.clientId), place, soonestMs };
  }

  #release({ resource, id: owner }: LockOwner, isPassedOn?: boolean): boolean {
    const server = this.connected();
    const { queues, locks } = server;
    const before = queues.has(resource, owner) ? queues.place(resource, owner) - 1 : undefined;
    queues.leave(resource, owner);
    const left = locks.remove(resource, owner);
    const lock = locks.get(resource);
    if (!lock || lock.isShared) server.grantWaiting(resource, undefined, left, isPassedOn);
    // It may be one that was told of an end that has moved nearer: those who are now among the first are told.
    if (before !== undefined && !left && lock && !lock.isFree)
      server.tellFirstWaiters(resource, lock.firstEndMs, before);
    return left !== undefined;
  }

  /** What this owner holds, alone or with others. */
  #held({ resource, id: owner }: LockOwner): { lock: MemoryLock; member: MemoryMember } | undefined {
    const lock = this.connected().locks.get(resource);
    const member = lock?.member(owner);
    return lock && member && { lock, member };
  }
}
