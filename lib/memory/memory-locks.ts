import type { Clock } from '../core/util/clock.js';
import { MemoryLock, type LockRequest } from './memory-lock.js';

/** So many locks are looked at for each that comes: more than come, so that none is forgotten forever. */
const SWEPT_AT_ONCE = 2;

/** The locks in use, by resource. One whose holders have all died is gone. */
export class MemoryLocks {
  readonly #locks = new Map<string, MemoryLock>();

  constructor(private readonly clock: Clock) {}

  get(resource: string): MemoryLock | undefined {
    const lock = this.#locks.get(resource);
    if (!lock?.isFree) return lock;
    this.#locks.delete(resource);
    return undefined;
  }

  /** The lock in use, or the one that was left this moment, or a new one, for a request that may have it. */
  open(resource: string, request: LockRequest, left?: MemoryLock): MemoryLock {
    let lock = this.get(resource);
    if (lock === undefined) {
      this.#sweep();
      lock = left ?? new MemoryLock(request, this.clock);
      this.#locks.set(resource, lock);
    }
    return lock;
  }

  delete(resource: string): void {
    this.#locks.delete(resource);
  }

  /** Removes a member, if it is one. Gives the lock that it has left. */
  remove(resource: string, owner: string): MemoryLock | undefined {
    const lock = this.get(resource);
    if (lock?.member(owner) === undefined) return undefined;
    lock.remove(owner);
    if (lock.isFree) this.delete(resource);
    return lock;
  }

  /** What an attempt is told to wait for, at most; 0 where the resource is free. */
  ttlMs(resource: string): number {
    return this.get(resource)?.nextEndMs ?? 0;
  }

  /** The resources that are held. */
  resources(): string[] {
    return [...this.#locks.keys()].filter((resource) => this.get(resource));
  }

  /** So that locks whose holders died, and that nobody asks for again, do not pile up. */
  #sweep(): void {
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept++) {
      const [oldest] = this.#locks;
      if (oldest === undefined) return;
      const [resource, lock] = oldest;
      this.#locks.delete(resource);
      if (!lock.isFree) this.#locks.set(resource, lock);
    }
  }
}
