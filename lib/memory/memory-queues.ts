import type { Clock } from '../core/util/clock.js';
import { ExpiringMap } from '../core/util/expiring-map.js';
import type { LockRequest } from './memory-lock.js';

/** A waiter for a resource. */
interface MemoryWaiter extends LockRequest {
  readonly owner: string;
  /** How long its place lasts from each keep on, and a lease that it is granted. */
  readonly leaseMs: number;
  /** Until when it counts as alive, unless it asks again; and when its lease ends if it is granted one. */
  readonly expiresAt: number;
  /** When it last asked, by its own clock. */
  readonly sentAt: number;
}

interface Queue {
  /** By owner, in the order they came: a map keeps the place of an entry that is written again. */
  readonly waiters: Map<string, MemoryWaiter>;
  lastsUntil: number;
}

/** The waiters for each resource, first come, first served. A queue is removed when its last waiter expires. */
export class MemoryQueues {
  readonly #queues: ExpiringMap<Queue>;

  constructor(private readonly clock: Clock) {
    this.#queues = new ExpiringMap(clock);
  }

  /**
   * Adds a waiter at the end and drops the dead ones. A waiter that is already in the queue keeps its place and is
   * updated.
   */
  join(resource: string, waiter: MemoryWaiter): void {
    if (!this.has(resource, waiter.owner)) this.#dropExpired(resource);
    const queue = this.#queues.get(resource) ?? { waiters: new Map(), lastsUntil: waiter.expiresAt };
    queue.waiters.set(waiter.owner, waiter);
    queue.lastsUntil = Math.max(queue.lastsUntil, waiter.expiresAt);
    this.#queues.set(resource, queue, queue.lastsUntil - this.clock.now());
  }

  leave(resource: string, owner: string): void {
    const waiters = this.#queues.get(resource)?.waiters;
    waiters?.delete(owner);
    if (waiters?.size === 0) this.#queues.delete(resource);
  }

  /** The first living waiter. The dead ones before it are dropped. */
  first(resource: string): MemoryWaiter | undefined {
    for (const waiter of this.#queues.get(resource)?.waiters.values() ?? []) {
      if (this.#isAlive(waiter)) return waiter;
      this.leave(resource, waiter.owner);
    }
    return undefined;
  }

  /** The place of this owner, unless it is over. */
  find(resource: string, owner: string): MemoryWaiter | undefined {
    const waiter = this.#queues.get(resource)?.waiters.get(owner);
    return waiter && this.#isAlive(waiter) ? waiter : undefined;
  }

  /** When the first of all places that are not over will be over, in milliseconds from now. */
  soonestMs(resource: string): number {
    return Math.min(...this.alive(resource).map(({ expiresAt }) => expiresAt)) - this.clock.now();
  }

  /** Whether the owner is in the queue, alive or not. */
  has(resource: string, owner: string): boolean {
    return this.#queues.get(resource)?.waiters.has(owner) ?? false;
  }

  /** How many waiters stand there up to this one, alive or not. */
  place(resource: string, owner: string): number {
    let place = 0;
    for (const each of this.#queues.get(resource)?.waiters.keys() ?? []) {
      place++;
      if (each === owner) return place;
    }
    return 0;
  }

  /** The living waiters, in order, one after another. */
  *living(resource: string): Iterable<MemoryWaiter> {
    for (const waiter of this.#queues.get(resource)?.waiters.values() ?? []) if (this.#isAlive(waiter)) yield waiter;
  }

  /** The number of living waiters. */
  length(resource: string): number {
    return this.alive(resource).length;
  }

  /** The living waiters, in order. */
  alive(resource: string): MemoryWaiter[] {
    return [...this.living(resource)];
  }

  /** The resources that have a living waiter. */
  resources(): string[] {
    return this.#queues.keys().filter((resource) => this.alive(resource).length > 0);
  }

  /** How many queues are kept. */
  get size(): number {
    return this.#queues.size;
  }

  #dropExpired(resource: string): void {
    for (const waiter of this.#queues.get(resource)?.waiters.values() ?? []) {
      if (!this.#isAlive(waiter)) this.leave(resource, waiter.owner);
    }
  }

  #isAlive({ expiresAt }: MemoryWaiter): boolean {
    return expiresAt > this.clock.now();
  }
}
