import type { Clock } from '../core/util/clock.js';
import { ExpiringMap } from '../core/util/expiring-map.js';
import type { LockMode, PermitRequest } from '../core/api/lock-options.js';
import type { FoundInUse } from '../core/store/lock-store.js';

/** How a resource is requested. */
export interface LockRequest {
  readonly mode: LockMode;
  readonly permits?: PermitRequest;
}

/** One who holds a lock, alone or among others. */
export interface MemoryMember {
  readonly owner: string;
  readonly fencingToken: number;
  readonly depth: number;
  /** How many permits of a semaphore; 1 in other modes. */
  readonly permits: number;
}

/** What a request counts as when it asks for no permits. */
const ONE: PermitRequest = { count: 1, total: 1, isResized: false };

/**
 * A lock in use, and the rules of who may share it. Each of its members has a lease of its own and is gone when that is
 * over; without members the lock is free.
 */
export class MemoryLock {
  readonly #members: ExpiringMap<MemoryMember>;
  #mode: LockMode;
  #total: number;
  #isResized: boolean;

  constructor({ mode, permits = ONE }: LockRequest, clock: Clock) {
    this.#members = new ExpiringMap(clock);
    this.#mode = mode;
    this.#total = permits.total;
    this.#isResized = permits.isResized;
  }

  get mode(): LockMode {
    return this.#mode;
  }

  get total(): number {
    return this.#total;
  }

  /** What it is in use as. */
  get found(): FoundInUse {
    return { mode: this.#mode, total: this.#total };
  }

  /** Whether it may have several members: of readers, or of those who hold permits. */
  get isShared(): boolean {
    return this.#mode === 'read' || this.#mode === 'semaphore';
  }

  get isFree(): boolean {
    return this.#members.size === 0;
  }

  /** How many permits are held. */
  get used(): number {
    return this.#members.values().reduce((sum, { permits }) => sum + permits, 0);
  }

  /** How many permits are left; none where more are held than there are since it was resized. */
  get available(): number {
    return Math.max(0, this.#total - this.used);
  }

  /** Whether it may be shared with this one now: a reader with readers, or permits that are free. */
  admits({ mode, permits = ONE }: LockRequest): boolean {
    if (this.#mode === 'read') return mode === 'read';
    if (this.#mode !== 'semaphore' || mode !== 'semaphore') return false;
    return this.used + permits.count <= this.#totalFor(permits);
  }

  /** Whether waiting is in vain: for a mutex in use as a semaphore, and the reverse, or a semaphore of another size. */
  isMismatch({ mode, permits = ONE }: LockRequest): boolean {
    if (mode !== 'semaphore' && this.#mode !== 'semaphore') return false;
    if (mode !== this.#mode) return true;
    if (permits.total !== this.#total && !this.#isResized && !permits.isResized) return true;
    return permits.count > this.#totalFor(permits);
  }

  /**
   * One who is granted, or queued: what it decided on the total counts from now on, unless an earlier request had
   * decided.
   */
  acceptTotal({ permits = ONE }: LockRequest): void {
    this.#total = this.#totalFor(permits);
    this.#isResized ||= permits.isResized;
  }

  resize(total: number): void {
    this.#total = total;
    this.#isResized = true;
  }

  /** The writer is a reader from now on. */
  downgrade(): void {
    this.#mode = 'read';
  }

  /** In the order of their tokens. */
  members(): MemoryMember[] {
    return this.#members.values().sort((one, other) => one.fencingToken - other.fencingToken);
  }

  member(owner: string): MemoryMember | undefined {
    return this.#members.get(owner);
  }

  /** The member is as given from now on, and its lease lasts this long. */
  put(member: MemoryMember, leaseMs: number): void {
    this.#members.set(member.owner, member, leaseMs);
  }

  /** The member is as given from now on, and its lease ends when it would have. */
  replace(member: MemoryMember): void {
    this.#members.replace(member.owner, member);
  }

  /** The member is as given from now on, and its lease lasts at least this much longer. */
  lengthen(member: MemoryMember, leaseMs: number): void {
    this.#members.lengthen(member.owner, member, leaseMs);
  }

  remove(owner: string): void {
    this.#members.delete(owner);
  }

  /** What is left of the lease of a member. */
  ttlMs(owner: string): number {
    return this.#members.ttlMs(owner);
  }

  /** When the last of the leases ends. */
  get lastEndMs(): number {
    return Math.max(0, ...this.#ttls());
  }

  /**
   * When there is something to hope for: readers go with the last of them, permits come free with the first lease that
   * ends.
   */
  get nextEndMs(): number {
    return this.#mode === 'semaphore' ? Math.min(...this.#ttls()) : this.lastEndMs;
  }

  #ttls(): number[] {
    return this.#members.values().map(({ owner }) => this.ttlMs(owner));
  }

  /** The total that counts where this one asks. */
  #totalFor({ total, isResized }: PermitRequest): number {
    return isResized && !this.#isResized ? total : this.#total;
  }
}
