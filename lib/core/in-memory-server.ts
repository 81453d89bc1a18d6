import { type Clock, SystemClock } from './clock.js';
import { ExpiringMap } from './expiring-map.js';
import { InMemoryQueues } from './in-memory-queues.js';
import type { LockMode } from './lock-options.js';
import type { PushedGrant } from './lock-store.js';
import { clientOf, instanceOf } from './owner-id.js';

/** A lock as the in-memory server keeps it. */
export interface InMemoryLock {
  readonly owner: string;
  readonly mode: LockMode;
  readonly fencingToken: number;
  readonly depth: number;
}

type InboxListener = (grant: PushedGrant) => void;

/** 2020-01-01: fencing ticks count from here, in units of 10 µs. */
const TICKS_BEGIN_MS = Date.UTC(2020, 0, 1);
const TICKS_PER_MS = 100;
/** A token is the tick times this; it leaves room to number hand-overs inside one tenure. */
const TOKENS_PER_TICK = 32;

/**
 * What Redis is to the real stores, for the in-memory ones of **one process**: give the same server to several of them and
 * they are several instances that compete. Nothing outside the process sees it, and nothing survives its end.
 */
export class InMemoryServer {
  readonly locks: ExpiringMap<InMemoryLock>;
  /** Who claimed which tick of which job, or that it has finished. */
  readonly claims: ExpiringMap<string>;
  readonly queues: InMemoryQueues;
  /** By client. */
  readonly #inboxes = new Map<string, InboxListener>();
  #lastTick = 0;

  constructor(readonly clock: Clock = new SystemClock()) {
    this.locks = new ExpiringMap(clock);
    this.claims = new ExpiringMap(clock);
    this.queues = new InMemoryQueues(clock);
  }

  /** The lock is as given now, and lasts at least this much longer. */
  lengthen(resource: string, lock: InMemoryLock, leaseMs: number): void {
    this.locks.set(resource, lock, Math.max(leaseMs, this.locks.ttlMs(resource)));
  }

  /** Writes the lock, with a new fencing token, which it gives. */
  take(resource: string, owner: string, mode: LockMode, leaseMs: number): number {
    const fencingToken = this.#mintToken();
    this.locks.set(resource, { owner, mode, fencingToken, depth: 1 }, leaseMs);
    return fencingToken;
  }

  /**
   * Grants a resource that is free to the first waiter who is alive, for what is left of its time, and tells its instance.
   * One whose time is over, or whose instance is gone, is dropped.
   */
  grantNext(resource: string): void {
    for (let next = this.queues.first(resource); next; next = this.queues.first(resource)) {
      const { owner, mode, expiresAt, sentAt } = next;
      this.queues.leave(resource, owner);
      const tell = this.#inboxes.get(clientOf(owner));
      if (tell === undefined) continue;
      const fencingToken = this.take(resource, owner, mode, expiresAt - this.clock.now());
      // Later, as a message over a connection would: nobody is called back inside his own call.
      queueMicrotask(() => tell({ resource, owner, fencingToken, sentAt }));
      return;
    }
  }

  /** The instances that wait for the resource, once for each of their contenders, the first one first. */
  listWaiters(resource: string): string[] {
    return this.queues.owners(resource).map(instanceOf);
  }

  /** Opens the inbox of a client; gives the function that closes it. */
  openInbox(clientId: string, listener: InboxListener): () => void {
    this.#inboxes.set(clientId, listener);
    return () => void this.#inboxes.delete(clientId);
  }

  /** Whether nothing of any resource is left: no lock and no waiter. */
  get isEmpty(): boolean {
    return this.locks.size === 0 && this.queues.size === 0;
  }

  /** Larger than every token before, and never smaller than the time. */
  #mintToken(): number {
    const byTheClock = Math.floor((this.clock.wallNow() - TICKS_BEGIN_MS) * TICKS_PER_MS);
    this.#lastTick = Math.max(this.#lastTick + 1, byTheClock);
    return this.#lastTick * TOKENS_PER_TICK;
  }
}
