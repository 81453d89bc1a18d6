import { InMemoryServer } from './in-memory-server.js';
import { type AcquireReply, type LockState, type LockStore, LockStoreError, type Ownership } from './lock-store.js';
import { instanceOf } from './owner-id.js';

export interface InMemoryLockStoreOptions {
  /** Must differ between the stores of one server. */
  readonly instanceId: string;
  /** Where the locks are. Stores that share one compete, as instances on one Redis do. @default a server of its own */
  readonly server?: InMemoryServer;
}

/**
 * Locks in the memory of **one process**, with the rules of the Redis scripts: expiry, fencing tokens, wake-ups. For the
 * tests of an application that should run without Redis. It protects nothing from another process: never use it where an
 * application has several instances.
 */
export class InMemoryLockStore implements LockStore {
  readonly instanceId: string;
  readonly #server: InMemoryServer;
  readonly #listeners: ((resource: string | undefined) => void)[] = [];
  readonly #closeInbox: () => void;
  #isClosed = false;

  constructor({ instanceId, server = new InMemoryServer() }: InMemoryLockStoreOptions) {
    this.instanceId = instanceId;
    this.#server = server;
    this.#closeInbox = server.openInbox(instanceId, (resource) => {
      for (const listener of this.#listeners) listener(resource);
    });
  }

  async acquire({ resource, owner, mode }: Ownership, leaseMs: number, wait: boolean): Promise<AcquireReply> {
    const server = this.#connected();
    const lock = server.locks.get(resource);
    if (lock && lock.owner !== owner) {
      if (wait) server.joinWaiters(resource, this.instanceId);
      return { status: 'busy', ttlMs: server.locks.ttlMs(resource) };
    }
    if (wait) server.leaveWaiters(resource, this.instanceId);
    if (!lock) return { status: 'granted', fencingToken: server.take(resource, owner, mode, leaseMs) };
    // The command was sent again: the lease starts anew and nothing else changes.
    server.locks.set(resource, lock, leaseMs);
    return { status: 'granted', fencingToken: lock.fencingToken };
  }

  async setDepth(ownership: Ownership, depth: number, leaseMs: number): Promise<boolean> {
    const { locks } = this.#connected();
    const { resource } = ownership;
    const lock = this.#owned(ownership);
    if (lock?.mode !== 'reentrant') return false;
    locks.set(resource, { ...lock, depth }, Math.max(leaseMs, locks.ttlMs(resource)));
    return true;
  }

  async renew(ownership: Ownership, leaseMs: number): Promise<boolean> {
    const { locks } = this.#connected();
    const lock = this.#owned(ownership);
    if (lock) locks.set(ownership.resource, lock, leaseMs);
    return lock !== undefined;
  }

  async release(ownership: Ownership, leaveQueue: boolean): Promise<boolean> {
    const server = this.#connected();
    const { resource } = ownership;
    if (leaveQueue) server.leaveWaiters(resource, this.instanceId);
    const lock = server.locks.get(resource);
    const isOwner = lock?.owner === ownership.owner;
    if (lock && !isOwner) return false;
    server.locks.delete(resource);
    server.wakeNext(resource);
    return isOwner;
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

  onWake(listener: (resource: string | undefined) => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closeInbox();
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
