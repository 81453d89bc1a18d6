import type {
  AcquireReply,
  KeepReply,
  KeptPlace,
  LockOwner,
  Queueing,
  Retention,
  RotateReply,
} from '../../../lib/kernel/store/lock-store.js';
import type { LockState, LockWaiter } from '../../../lib/kernel/store/lock-state.js';
import type { Holder, Holders, LockLabel, StoredLabel } from '../../../lib/kernel/api/holder.js';
import type { PermitRequest } from '../../../lib/kernel/api/lock-options.js';
import { clientOf } from '../../../lib/kernel/store/ask.js';
import type { OwnedGrant } from '../../contract/grant-log.js';

interface ModelHolder {
  readonly resource: string;
  owner: string;
  mode: LockOwner['mode'];
  token: number;
  permits: number;
  depth: number;
  label: string | undefined;
  grantedAt: number;
  /** The length of its lease at the last grant or renewal; 0 if it was released but stays taken. */
  leaseMs: number;
  endsAt: number;
}

interface Waiter {
  readonly resource: string;
  readonly owner: string;
  mode: LockOwner['mode'];
  permits: PermitRequest | undefined;
  label: string | undefined;
  leaseMs: number;
  endsAt: number;
  sentAt: number;
}

/** Waits until a resource is free, without taking it. */
interface ModelWatcher {
  readonly resource: string;
  readonly watcher: string;
  readonly mark: number;
}

/** Modes in which several may hold. */
const SHARED: readonly string[] = ['read', 'semaphore'];

/** The model numbers its ticks 1, 2, 3. A tick has as many tokens as a real one. */
export const TOKENS_PER_TICK = 64;

/**
 * A lock store in its simplest form: one list of all holders, and one of all waiters. For comparison with a real store,
 * step by step. Its tokens represent the order of the real ones.
 */
export class LockModel {
  now = 0;
  /** Clients that receive no more messages. */
  readonly gone = new Set<string>();
  /** The grants by message, in order. The reader empties it. */
  readonly told: OwnedGrant[] = [];
  /** The messages that a resource was free. Reading them empties the list. */
  readonly toldFree: ModelWatcher[] = [];
  holders: ModelHolder[] = [];
  waiters: Waiter[] = [];
  watchers: ModelWatcher[] = [];
  /** `true` if a freed resource goes to its next owner in the same step. */
  #isPassedOn = false;
  readonly #totals = new Map<string, { total: number; isResized: boolean }>();
  #tick = 0;

  acquire(newOwner: LockOwner, leaseMs: number, queueing?: Queueing): AcquireReply {
    const { resource, id: owner, mode, permits, label } = newOwner;
    this.#forgetTheDead();
    const own = this.holderOf(resource, owner);
    if (own) {
      this.#lengthen(resource, owner, leaseMs);
      this.#leave(resource, owner);
      return { status: 'granted', fencingToken: own.token };
    }
    const standing = this.#modeOf(resource);
    if (standing === undefined || SHARED.includes(standing)) this.#grantLoop(resource, owner);
    const ttlMs = this.#ttlOfReply(resource);
    if (this.#isMismatch(newOwner)) {
      this.#leave(resource, owner);
      const { mode: found } = this.holdersOf(resource)[0]!;
      const total = found === 'semaphore' ? this.#totals.get(resource)!.total : 1;
      return { status: 'mismatch', ttlMs, found: { mode: found, total } };
    }
    // Only looks at the queue if the lock has room: behind a holder, a place that has expired stays until another joins.
    const next = this.#isAdmitted(newOwner) ? this.#first(resource) : undefined;
    if (this.#isAdmitted(newOwner) && (next === undefined || next.owner === owner)) {
      this.#leave(resource, owner);
      return { status: 'granted', fencingToken: this.#take(newOwner, leaseMs) };
    }
    const seen = this.#seenBy(newOwner);
    if (!queueing) return { status: 'busy', ttlMs, seen };
    const queue = this.waiters.filter((waiter) => waiter.resource === resource);
    const place = queue.find((waiter) => waiter.owner === owner);
    const alive = queue.filter(({ endsAt }) => endsAt > this.now);
    if (!place && alive.length >= queueing.maxWaiters) return { status: 'full', ttlMs, seen };
    // A new waiter drops the dead ones.
    if (!place) this.waiters = this.waiters.filter((waiter) => !queue.includes(waiter) || alive.includes(waiter));
    const sentAt = Math.floor(queueing.sentAt);
    const asked = { mode, permits, label, leaseMs, endsAt: this.now + leaseMs, sentAt };
    if (place) Object.assign(place, asked);
    else this.waiters.push({ resource, owner, ...asked });
    const soonestMs = this.#soonestMs(resource);
    this.#decideTotal(newOwner);
    if (permits?.isResized) this.#grantLoop(resource);
    return { status: 'queued', ttlMs, seen, soonestMs };
  }

  /** Nothing else changes. A waiter that may be granted the resource, or never will be, has to ask. */
  keep({ waiter, leaseMs }: KeptPlace, sentAt: number): Exclude<KeepReply, Error> {
    const { resource, id } = waiter;
    this.#forgetTheDead();
    const alive = this.waiters.filter((other) => other.resource === resource && other.endsAt > this.now);
    const place = alive.find(({ owner }) => owner === id);
    const isHeld = this.holdersOf(resource).length > 0;
    if (!place || !isHeld || this.#isMismatch(place)) return { status: 'ask' };
    if (place === alive[0] && this.#isAdmitted(place)) return { status: 'ask' };
    Object.assign(place, { leaseMs, endsAt: this.now + leaseMs, sentAt: Math.floor(sentAt) });
    const [ttlMs, seen] = [this.#ttlOfReply(resource), this.#seenBy(waiter)];
    return { status: 'kept', ttlMs, seen, soonestMs: this.#soonestMs(resource) };
  }

  /** Returns true if this waiter is the first live one. */
  isFirst(resource: string, owner: string): boolean {
    return this.waiters.find((waiter) => waiter.resource === resource && waiter.endsAt > this.now)?.owner === owner;
  }

  release({ resource, id: owner }: LockOwner): boolean {
    this.#forgetTheDead();
    this.#leave(resource, owner);
    const wasHeld = this.#remove(resource, owner);
    const mode = this.#modeOf(resource);
    if (mode === undefined || SHARED.includes(mode)) this.#grantLoop(resource);
    return wasHeld;
  }

  /** A retained lease belongs to an owner that is done with it. */
  retain(owner: LockOwner, { minHoldMs = Infinity, leftMs }: Retention): boolean {
    this.#forgetTheDead();
    const { resource, id } = owner;
    const kept = `${id}~`;
    const isKept = this.holderOf(resource, kept) !== undefined;
    const held = this.holderOf(resource, id);
    const left = held ? Math.min(leftMs, held.grantedAt + minHoldMs - this.now) : 0;
    if (isKept || left <= 0) return this.release(owner) || isKept;
    this.holders.splice(this.holders.indexOf(held!), 1);
    this.holders.push({ ...held!, owner: kept, depth: 1, leaseMs: 0, endsAt: this.now + left });
    return true;
  }

  rotate(owner: LockOwner, next: LockOwner, leaseMs: number, queueing: Queueing): RotateReply & { next: AcquireReply } {
    this.#isPassedOn = true;
    const reply = { released: this.release(owner), next: this.acquire(next, leaseMs, queueing) };
    this.#isPassedOn = false;
    return reply;
  }

  renew({ resource, id: owner }: LockOwner, leaseMs: number, exactly: boolean): boolean {
    const held = this.#lengthen(resource, owner, leaseMs);
    if (held && exactly) Object.assign(held, { leaseMs, endsAt: this.now + leaseMs });
    return held !== undefined;
  }

  setDepth({ resource, id: owner }: LockOwner, depth: number, leaseMs: number): boolean {
    this.#forgetTheDead();
    const mode = this.holderOf(resource, owner)?.mode;
    if (mode !== 'reentrant' && mode !== 'write') return false;
    this.#lengthen(resource, owner, leaseMs)!.depth = depth;
    return true;
  }

  label({ resource, id: owner }: LockOwner, label: string | undefined): boolean {
    this.#forgetTheDead();
    const held = this.holderOf(resource, owner);
    if (held) held.label = label;
    return held !== undefined;
  }

  verify({ resource, id: owner }: LockOwner): boolean {
    this.#forgetTheDead();
    return this.holderOf(resource, owner) !== undefined;
  }

  downgrade({ resource, id: owner }: LockOwner, leaseMs: number): boolean {
    this.#forgetTheDead();
    const mode = this.holderOf(resource, owner)?.mode;
    if (mode !== 'write' && mode !== 'read') return false;
    const held = this.#lengthen(resource, owner, leaseMs)!;
    if (mode === 'write') {
      held.mode = 'read';
      held.depth = 1;
      this.#grantLoop(resource);
    }
    return true;
  }

  lowerPermits({ resource, id: owner }: LockOwner, count: number): boolean {
    this.#forgetTheDead();
    const held = this.holderOf(resource, owner);
    if (held?.mode !== 'semaphore') return false;
    held.permits = Math.min(held.permits, count);
    this.#grantLoop(resource);
    return true;
  }

  resize(resource: string, total: number): boolean {
    this.#forgetTheDead();
    const mode = this.holdersOf(resource)[0]?.mode;
    if (mode === undefined) return true;
    if (mode !== 'semaphore') return false;
    this.#totals.set(resource, { total, isResized: true });
    this.#grantLoop(resource);
    return true;
  }

  forceRelease(resource: string, fencingToken: number): boolean {
    this.#forgetTheDead();
    const tick = Math.floor(fencingToken / TOKENS_PER_TICK);
    const ofTick = this.holdersOf(resource).filter(({ token }) => Math.floor(token / TOKENS_PER_TICK) === tick);
    ofTick.sort((one, other) => one.token - other.token);
    const ended = ofTick.find(({ token }) => token === fencingToken) ?? ofTick[0];
    if (!ended) return false;
    this.#remove(resource, ended.owner);
    this.#grantLoop(resource);
    return true;
  }

  /** @returns `true` if the resource is free; otherwise the watcher is notified later */
  watch(resource: string, watcher: string, mark: number): boolean {
    this.#forgetTheDead();
    if (this.holdersOf(resource).length === 0) this.#grantLoop(resource);
    const isFree = this.holdersOf(resource).length === 0;
    this.watchers = this.watchers.filter((other) => other.watcher !== watcher);
    if (!isFree) this.watchers.push({ resource, watcher, mark });
    return isFree;
  }

  /** @param clientId the client that asks */
  inspect(resource: string, clientId: string): LockState {
    this.#forgetTheDead();
    const held = this.holdersOf(resource);
    const mode = held[0]?.mode ?? null;
    const isSemaphore = mode === 'semaphore';
    const holders = held.map((holder) => this.#shown(holder, clientId));
    const waiters: LockWaiter[] = [];
    for (const waiter of this.waiters) {
      if (waiter.resource !== resource || waiter.endsAt <= this.now) continue;
      const { owner, mode: wanted, label, leaseMs } = waiter;
      const described = { instanceId: owner.split('/')[0]!, mode: wanted, leaseMs, ...shown(label) };
      waiters.push(waiter.permits ? { ...described, permits: waiter.permits.count } : described);
    }
    const ttlMs = Math.max(0, ...held.map(({ endsAt }) => endsAt - this.now));
    const state = { resource, mode, holders, ttlMs, waiters };
    if (!isSemaphore) return state;
    const { total } = this.#totals.get(resource)!;
    return { ...state, permits: { total, available: Math.max(0, total - this.#used(resource)) } };
  }

  list(prefix: string): string[] {
    this.#forgetTheDead();
    const alive = this.waiters.filter(({ endsAt }) => endsAt > this.now);
    const all = [...this.holders, ...alive].map(({ resource }) => resource);
    return [...new Set(all)].filter((resource) => resource.startsWith(prefix)).sort();
  }

  holdersOf(resource: string): ModelHolder[] {
    return this.holders.filter((holder) => holder.resource === resource);
  }

  holderOf(resource: string, owner: string): ModelHolder | undefined {
    return this.holdersOf(resource).find((holder) => holder.owner === owner);
  }

  waits(resource: string, owner: string): boolean {
    return this.waiters.some((waiter) => waiter.resource === resource && waiter.owner === owner);
  }

  /** Removes expired leases. A lock ends with its last holder, and with it the size of a semaphore. */
  #forgetTheDead(): void {
    this.holders = this.holders.filter(({ endsAt }) => endsAt > this.now);
    for (const resource of this.#totals.keys()) {
      if (this.holdersOf(resource).length === 0) this.#totals.delete(resource);
    }
  }

  /** All holders, as the client of this owner sees them. Their remaining time is not in the model. */
  #seenBy({ resource, id }: LockOwner): Holders {
    const holders = this.holdersOf(resource).map((holder) => this.#shown(holder, clientOf(id)));
    return { holders, holderCount: holders.length };
  }

  #shown({ owner, mode, token, depth, permits, label, leaseMs, endsAt }: ModelHolder, clientId: string): Holder {
    return {
      instanceId: owner.split('/')[0]!,
      isThisProcess: clientOf(owner) === clientId,
      mode,
      fencingToken: token,
      ttlMs: endsAt - this.now,
      leaseMs,
      heldMs: 0,
      depth,
      ...(mode === 'semaphore' && { permits }),
      ...(leaseMs === 0 && { isKept: true as const }),
      ...shown(label),
    };
  }

  /** The current mode. The size of a semaphore outlives its last holder for the rest of this step. */
  #modeOf(resource: string): LockOwner['mode'] | undefined {
    return this.holdersOf(resource)[0]?.mode ?? (this.#totals.has(resource) ? 'semaphore' : undefined);
  }

  #isAdmitted({ resource, mode, permits }: LockOwner | Waiter): boolean {
    const standing = this.#modeOf(resource);
    if (standing === undefined) return true;
    if (standing === 'read' && mode === 'read') return true;
    if (standing !== 'semaphore' || mode !== 'semaphore') return false;
    return this.#used(resource) + permits!.count <= this.#countingTotal(resource, permits!);
  }

  #isMismatch({ resource, mode, permits }: LockOwner | Waiter): boolean {
    const standing = this.#modeOf(resource);
    if (standing === undefined) return false;
    const isInUseAsSemaphore = standing === 'semaphore';
    const wantsSemaphore = mode === 'semaphore';
    if (isInUseAsSemaphore !== wantsSemaphore) return true;
    if (!wantsSemaphore) return false;
    const { total, isResized } = this.#totals.get(resource)!;
    if (permits!.total !== total && !isResized && !permits!.isResized) return true;
    return permits!.count > this.#countingTotal(resource, permits!);
  }

  #countingTotal(resource: string, permits: PermitRequest): number {
    const { total, isResized } = this.#totals.get(resource)!;
    if (isResized) return total;
    return permits.isResized ? permits.total : total;
  }

  #decideTotal({ resource, permits }: LockOwner | Waiter): void {
    if (!permits) return;
    const known = this.#totals.get(resource);
    if (known === undefined) this.#totals.set(resource, { total: permits.total, isResized: permits.isResized });
    else if (!known.isResized && permits.isResized) {
      this.#totals.set(resource, { total: permits.total, isResized: true });
    }
  }

  #grantLoop(resource: string, asking?: string): void {
    for (;;) {
      const waiter = this.#first(resource);
      if (waiter === undefined) this.#tellWatchers(resource);
      if (waiter === undefined || waiter.owner === asking) return;
      if (this.#isMismatch(waiter)) {
        this.#leave(resource, waiter.owner);
        continue;
      }
      if (!this.#isAdmitted(waiter)) return;
      this.#leave(resource, waiter.owner);
      if (this.gone.has(waiter.owner.slice(0, waiter.owner.lastIndexOf('/')))) continue;
      const fencingToken = this.#take({ ...waiter, id: waiter.owner }, waiter.leaseMs, waiter.endsAt);
      this.told.push({ resource, owner: waiter.owner, fencingToken, sentAt: waiter.sentAt });
    }
  }

  #tellWatchers(resource: string): void {
    if (this.#isPassedOn || this.holdersOf(resource).length > 0) return;
    const told = this.watchers.filter((watcher) => watcher.resource === resource);
    this.watchers = this.watchers.filter((watcher) => !told.includes(watcher));
    this.toldFree.push(...told.filter(({ watcher }) => !this.gone.has(watcher.slice(0, watcher.lastIndexOf('/')))));
  }

  #take(request: LockOwner, leaseMs: number, endsAt = this.now + leaseMs): number {
    const { resource, id: owner, mode, permits, label } = request;
    this.#decideTotal(request);
    const token = ++this.#tick * TOKENS_PER_TICK;
    this.holders.push({
      resource,
      owner,
      mode,
      token,
      permits: permits?.count ?? 1,
      depth: 1,
      label,
      grantedAt: this.now,
      leaseMs,
      endsAt,
    });
    return token;
  }

  #lengthen(resource: string, owner: string, leaseMs: number): ModelHolder | undefined {
    this.#forgetTheDead();
    const held = this.holderOf(resource, owner);
    if (held) {
      held.endsAt = Math.max(held.endsAt, this.now + leaseMs);
      held.leaseMs = held.endsAt - this.now;
    }
    return held;
  }

  #remove(resource: string, owner: string): boolean {
    const held = this.holderOf(resource, owner);
    if (!held) return false;
    this.holders.splice(this.holders.indexOf(held), 1);
    return true;
  }

  /** The first waiter who is alive; those before it are dropped. */
  #first(resource: string): Waiter | undefined {
    for (;;) {
      const first = this.waiters.find((waiter) => waiter.resource === resource);
      if (first === undefined || first.endsAt > this.now) return first;
      this.#leave(resource, first.owner);
    }
  }

  #leave(resource: string, owner: string): void {
    this.waiters = this.waiters.filter((waiter) => waiter.resource !== resource || waiter.owner !== owner);
  }

  /** When the first of the places that are not over will be over, or of the leases of readers. */
  #soonestMs(resource: string): number {
    const readers = this.holdersOf(resource).filter(({ mode }) => mode === 'read');
    const places = this.waiters.filter((waiter) => waiter.resource === resource);
    const ends = [...places, ...readers].map(({ endsAt }) => endsAt - this.now);
    return Math.min(...ends.filter((left) => left > 0));
  }

  #used(resource: string): number {
    let used = 0;
    for (const { permits } of this.holdersOf(resource)) used += permits;
    return used;
  }

  #ttlOfReply(resource: string): number {
    const held = this.holdersOf(resource);
    if (held.length === 0) return 0;
    const left = held.map(({ endsAt }) => endsAt - this.now);
    return held[0]!.mode === 'semaphore' ? Math.min(...left) : Math.max(...left);
  }
}

/** The visible label; the empty one means that the lease was passed on inside its process. */
function shown(label: string | undefined): StoredLabel {
  if (label === undefined) return {};
  return label === '{}' ? { isHandedOn: true } : { label: JSON.parse(label) as LockLabel };
}
