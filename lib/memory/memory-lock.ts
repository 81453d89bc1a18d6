import type { Clock } from '../core/util/clock.js';
import { ExpiringMap } from '../core/util/expiring-map.js';
import { readLabel } from '../core/api/label.js';
import type { LockMode, PermitRequest } from '../core/api/lock-options.js';
import { type Holder, type Holders, MAX_NAMED_HOLDERS } from '../core/api/holder.js';
import { mintedAt } from '../core/store/fencing-token.js';
import type { FoundInUse } from '../core/store/lock-store.js';
import { clientOf, instanceOf } from '../core/store/owner-id.js';

/** How a resource is requested. */
export interface LockRequest {
  readonly mode: LockMode;
  readonly permits?: PermitRequest;
  readonly label?: string | undefined;
}

/** A holder of a lock, alone or among others. */
export interface MemoryMember {
  readonly owner: string;
  readonly fencingToken: number;
  readonly depth: number;
  /** When it was granted to the first owner, on the clock of the server. */
  readonly grantedAt: number;
  /** How many permits of a semaphore; 1 in other modes. */
  readonly permits: number;
  readonly label: string | undefined;
  /** How long its lease was when it was last granted or renewed; 0 where it was released, and stays taken. */
  readonly leaseMs: number;
}

/** The same, before it has a lease. */
type Unleased = Omit<MemoryMember, 'leaseMs'>;

/** What a request counts as when it asks for no permits. */
const ONE: PermitRequest = { count: 1, total: 1, isResized: false };

/**
 * A lock in use, and the rules for sharing it. Each member has its own lease and is removed when that ends. Without
 * members the lock is free.
 */
export class MemoryLock {
  readonly #members: ExpiringMap<MemoryMember>;
  #mode: LockMode;
  #total: number;
  #isResized: boolean;

  constructor(
    { mode, permits = ONE }: LockRequest,
    private readonly clock: Clock,
  ) {
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

  /** How it is in use. */
  get found(): FoundInUse {
    return { mode: this.#mode, total: this.#total };
  }

  /** Whether it may have several members: readers, or holders of permits. */
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

  /** How many permits are free; 0 if a resize left fewer permits than are held. */
  get available(): number {
    return Math.max(0, this.#total - this.used);
  }

  /** Whether this request may share it now: a reader with readers, or enough free permits. */
  admits({ mode, permits = ONE }: LockRequest): boolean {
    if (this.#mode === 'read') return mode === 'read';
    if (this.#mode !== 'semaphore' || mode !== 'semaphore') return false;
    return this.used + permits.count <= this.#totalFor(permits);
  }

  /** Whether the request can never share it: a lock and a semaphore, or semaphores of different sizes. */
  isMismatch({ mode, permits = ONE }: LockRequest): boolean {
    if (mode !== 'semaphore' && this.#mode !== 'semaphore') return false;
    if (mode !== this.#mode) return true;
    if (permits.total !== this.#total && !this.#isResized && !permits.isResized) return true;
    return permits.count > this.#totalFor(permits);
  }

  /**
   * Called for a request that is granted or queued. Its total counts from now on if it comes from a resize, unless an
   * earlier resize counts.
   */
  acceptTotal({ permits = ONE }: LockRequest): void {
    this.#total = this.#totalFor(permits);
    this.#isResized ||= permits.isResized;
  }

  resize(total: number): void {
    this.#total = total;
    this.#isResized = true;
  }

  /** Makes the writer a reader. */
  downgrade(): void {
    this.#mode = 'read';
  }

  /** What an answer to this client says of the members. */
  seenBy(clientId: string): Holders {
    const members = this.#members.values();
    const holders = members.slice(0, MAX_NAMED_HOLDERS).map((member) => this.#show(member, clientId));
    return {
      holders: holders.sort((one, other) => one.fencingToken - other.fencingToken),
      holderCount: members.length,
    };
  }

  /** All members, as this client sees them. */
  shownTo(clientId: string): Holder[] {
    return this.members().map((member) => this.#show(member, clientId));
  }

  #show({ owner, fencingToken, permits, depth, label, leaseMs }: MemoryMember, clientId: string): Holder {
    return {
      instanceId: instanceOf(owner),
      isThisProcess: clientOf(owner) === clientId,
      mode: this.#mode,
      fencingToken,
      ttlMs: this.ttlMs(owner),
      leaseMs,
      heldMs: Math.max(0, Math.ceil(this.clock.wallNow() - mintedAt(fencingToken))),
      depth,
      ...(this.#mode === 'semaphore' && { permits }),
      ...(leaseMs === 0 && { isKept: true as const }),
      ...readLabel(label),
    };
  }

  /** In the order of their tokens. */
  members(): MemoryMember[] {
    return this.#members.values().sort((one, other) => one.fencingToken - other.fencingToken);
  }

  member(owner: string): MemoryMember | undefined {
    return this.#members.get(owner);
  }

  /**
   * Sets the member. Its lease lasts `lastsMs` from now.
   *
   * @param leaseMs its whole length, where it began before
   */
  put(member: Unleased, lastsMs: number, leaseMs = lastsMs): void {
    this.#members.set(member.owner, { ...member, leaseMs }, lastsMs);
  }

  /** Sets the member and keeps the end of its lease. */
  replace(member: MemoryMember): void {
    this.#members.replace(member.owner, member);
  }

  /** Sets the member. Its lease lasts at least `leaseMs` from now. */
  lengthen(member: Unleased, leaseMs: number): void {
    this.put(member, Math.max(leaseMs, this.ttlMs(member.owner)));
  }

  remove(owner: string): void {
    this.#members.delete(owner);
  }

  /** The remaining lease of a member, in milliseconds. */
  ttlMs(owner: string): number {
    return this.#members.ttlMs(owner);
  }

  /** The time until the first lease ends, in milliseconds. */
  get firstEndMs(): number {
    return Math.min(...this.#ttls());
  }

  /** The time until the last lease ends, in milliseconds. */
  get lastEndMs(): number {
    return Math.max(0, ...this.#ttls());
  }

  /**
   * The time until a waiter may be granted, in milliseconds: until the last reader's lease ends, or the first lease of
   * permits.
   */
  get nextEndMs(): number {
    return this.#mode === 'semaphore' ? this.firstEndMs : this.lastEndMs;
  }

  #ttls(): number[] {
    return this.#members.values().map(({ owner }) => this.ttlMs(owner));
  }

  /** The total that counts for this request. */
  #totalFor({ total, isResized }: PermitRequest): number {
    return isResized && !this.#isResized ? total : this.#total;
  }
}
