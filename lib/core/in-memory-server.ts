import { type Clock, SystemClock } from './clock.js';
import { ExpiringMap } from './expiring-map.js';
import type { LockMode } from './lock-options.js';
import { WAITER_SILENCE_MS } from './lock-store.js';

/** A lock as the in-memory server keeps it. */
export interface InMemoryLock {
  readonly owner: string;
  readonly mode: LockMode;
  readonly fencingToken: number;
  readonly depth: number;
}

type WakeListener = (resource: string) => void;

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
  /** For each resource the instances that wait, the one not heard of for longest first, and until when each counts as alive. */
  readonly #waiters = new Map<string, Map<string, number>>();
  readonly #inboxes = new Map<string, Set<WakeListener>>();
  #lastTick = 0;

  constructor(readonly clock: Clock = new SystemClock()) {
    this.locks = new ExpiringMap(clock);
    this.claims = new ExpiringMap(clock);
  }

  /** Writes the lock, with a new fencing token, which it gives. */
  take(resource: string, owner: string, mode: LockMode, leaseMs: number): number {
    const fencingToken = this.#mintToken();
    this.locks.set(resource, { owner, mode, fencingToken, depth: 1 }, leaseMs);
    return fencingToken;
  }

  /** The instance wants to be woken; it goes to the end of the line. */
  joinWaiters(resource: string, instanceId: string): void {
    let waiters = this.#waiters.get(resource);
    if (waiters === undefined) this.#waiters.set(resource, (waiters = new Map()));
    waiters.delete(instanceId);
    waiters.set(instanceId, this.clock.now() + WAITER_SILENCE_MS);
  }

  leaveWaiters(resource: string, instanceId: string): void {
    const waiters = this.#waiters.get(resource);
    waiters?.delete(instanceId);
    if (waiters?.size === 0) this.#waiters.delete(resource);
  }

  listWaiters(resource: string): string[] {
    const waiters = [...(this.#waiters.get(resource) ?? [])];
    return waiters.filter(([, aliveUntil]) => aliveUntil >= this.clock.now()).map(([instanceId]) => instanceId);
  }

  /** Tells the waiting instance not heard of for longest that the resource is free. One that is silent or gone is passed over. */
  wakeNext(resource: string): void {
    for (const [instanceId, aliveUntil] of this.#waiters.get(resource) ?? []) {
      this.leaveWaiters(resource, instanceId);
      const listeners = this.#inboxes.get(instanceId);
      if (aliveUntil < this.clock.now() || !listeners) continue;
      // Later, as a message over a connection would: nobody is called back inside his own call.
      queueMicrotask(() => listeners.forEach((listener) => listener(resource)));
      return;
    }
  }

  /** Opens the inbox of an instance; gives the function that closes it. */
  openInbox(instanceId: string, listener: WakeListener): () => void {
    let listeners = this.#inboxes.get(instanceId);
    if (listeners === undefined) this.#inboxes.set(instanceId, (listeners = new Set()));
    const group = listeners.add(listener);
    return () => {
      group.delete(listener);
      if (group.size === 0 && this.#inboxes.get(instanceId) === group) this.#inboxes.delete(instanceId);
    };
  }

  /** Whether nothing of any resource is left: no lock and no waiter. */
  get isEmpty(): boolean {
    return this.locks.size === 0 && this.#waiters.size === 0;
  }

  /** Larger than every token before, and never smaller than the time. */
  #mintToken(): number {
    const byTheClock = Math.floor((this.clock.wallNow() - TICKS_BEGIN_MS) * TICKS_PER_MS);
    this.#lastTick = Math.max(this.#lastTick + 1, byTheClock);
    return this.#lastTick * TOKENS_PER_TICK;
  }
}
