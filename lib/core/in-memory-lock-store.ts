import { InMemoryServer } from './in-memory-server.js';
import {
  type AcquireReply,
  type GrantListener,
  type LockState,
  type LockStore,
  LockStoreError,
  type Ownership,
  type Queueing,
  type RotateReply,
} from './lock-store.js';
import { instanceOf } from './owner-id.js';

export interface InMemoryLockStoreOptions {
  /** Must differ between the stores of one server. */
  readonly instanceId: string;
  /** Where the locks are. Stores that share one compete, as instances on one Redis do. @default a server of its own */
  readonly server?: InMemoryServer;
}

let clients = 0;

/**
 * Locks in the memory of **one process**, with the rules of the Redis scripts: expiry, fencing tokens, queues. For the
 * tests of an application that should run without Redis. It protects nothing from another process: never use it where an
 * application has several instances.
 */
export class InMemoryLockStore implements LockStore {
  readonly instanceId: string;
  readonly clientId: string;
  readonly #server: InMemoryServer;
  readonly #listeners: GrantListener[] = [];
  readonly #closeInbox: () => void;
  #isClosed = false;

  constructor({ instanceId, server = new InMemoryServer() }: InMemoryLockStoreOptions) {
    this.instanceId = instanceId;
    this.clientId = `${instanceId}/${++clients}`;
    this.#server = server;
    this.#closeInbox = server.openInbox(this.clientId, (grant) => {
      for (const listener of this.#listeners) listener.granted(grant);
    });
  }

  async acquire(contender: Ownership, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
    return this.#acquire(contender, leaseMs, queueing);
  }

  async rotate(owner: Ownership, contender: Ownership, leaseMs: number, queueing: Queueing): Promise<RotateReply> {
    return { released: this.#release(owner), next: this.#acquire(contender, leaseMs, queueing) };
  }

  async setDepth(ownership: Ownership, depth: number, leaseMs: number): Promise<boolean> {
    const server = this.#connected();
    const { resource } = ownership;
    const lock = this.#owned(ownership);
    if (lock?.mode !== 'reentrant') return false;
    server.lengthen(resource, { ...lock, depth }, leaseMs);
    return true;
  }

  async renew(ownership: Ownership, leaseMs: number, exactly = false): Promise<boolean> {
    const server = this.#connected();
    const lock = this.#owned(ownership);
    if (lock === undefined) return false;
    if (exactly) server.locks.set(ownership.resource, lock, leaseMs);
    else server.lengthen(ownership.resource, lock, leaseMs);
    return true;
  }

  async release(ownership: Ownership): Promise<boolean> {
    return this.#release(ownership);
  }

  async verify(ownership: Ownership): Promise<boolean> {
    this.#connected();
    return this.#owned(ownership) !== undefined;
  }

  async inspect(resource: string): Promise<LockState> {
    const server = this.#connected();
    const lock = server.locks.get(resource);
    const waiters = server.listWaiters(resource);
    if (!lock) return { resource, mode: null, holders: [], ttlMs: 0, waiters };
    const { owner, mode, fencingToken, depth } = lock;
    const ttlMs = server.locks.ttlMs(resource);
    const instanceId = instanceOf(owner);
    return { resource, mode, holders: [{ instanceId, fencingToken, ttlMs, depth }], ttlMs, waiters };
  }

  listen(listener: GrantListener): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closeInbox();
  }

  #acquire({ resource, owner, mode }: Ownership, leaseMs: number, queueing: Queueing | undefined): AcquireReply {
    const server = this.#connected();
    const { locks, queues, clock } = server;
    const first = queues.first(resource);
    // Its holder died. Whoever waits comes before whoever asks.
    if (first && first.owner !== owner && !locks.get(resource)) server.grantNext(resource);
    const lock = locks.get(resource);
    if (!lock || lock.owner === owner) {
      queues.leave(resource, owner);
      if (!lock) return { status: 'granted', fencingToken: server.take(resource, owner, mode, leaseMs) };
      // It was granted before: the lease starts anew and nothing else changes.
      server.lengthen(resource, lock, leaseMs);
      return { status: 'granted', fencingToken: lock.fencingToken };
    }
    const ttlMs = locks.ttlMs(resource);
    if (!queueing) return { status: 'busy', ttlMs };
    const isFull = queues.length(resource) >= queueing.maxWaiters;
    if (isFull && !queues.has(resource, owner)) return { status: 'full', ttlMs };
    const sentAt = Math.floor(queueing.sentAt);
    queues.join(resource, { owner, mode, expiresAt: clock.now() + leaseMs, sentAt });
    return { status: 'queued', ttlMs };
  }

  #release({ resource, owner }: Ownership): boolean {
    const server = this.#connected();
    server.queues.leave(resource, owner);
    const lock = server.locks.get(resource);
    const isOwner = lock?.owner === owner;
    if (isOwner) server.locks.delete(resource);
    if (isOwner || !lock) server.grantNext(resource);
    return isOwner;
  }

  #connected(): InMemoryServer {
    if (this.#isClosed) throw new LockStoreError('notExecuted', 'the in-memory lock store is closed');
    return this.#server;
  }

  #owned({ resource, owner }: Ownership) {
    const lock = this.#server.locks.get(resource);
    return lock?.owner === owner ? lock : undefined;
  }
}
