import { type Clock, SYSTEM_CLOCK } from '../core/util/clock.js';
import { ExpiringMap } from '../core/util/expiring-map.js';
import { fencingTickAt, TOKENS_PER_FENCING_TICK } from '../core/store/fencing-token.js';
import { readLabel } from '../core/api/label.js';
import { MemoryLock, type LockRequest } from './memory-lock.js';
import { MemoryJobs } from './memory-jobs.js';
import { MemoryQueues } from './memory-queues.js';
import type { Watcher } from '../core/store/watch-store.js';
import type { LockOwner } from '../core/store/lock-store.js';
import type { StoreListener } from '../core/store/hearing.js';
import type { LockState, LockWaiter } from '../core/store/lock-state.js';
import { clientOf, instanceOf } from '../core/store/owner-id.js';

/** A latch as the in-memory server keeps it. */
export interface MemoryLatch {
  readonly count: number;
  /** The ids that were counted; empty once the latch is open. */
  readonly ids: Set<string>;
  isOpen: boolean;
}

/** Receives the messages for a client. None is missed, so there is no new connection. */
type MemoryInbox = Omit<Required<StoreListener>, 'unproven' | 'reconnected'>;

/** A watcher of a resource, until its watch ends. */
interface MemoryWatcher extends Watcher {
  readonly expiresAt: number;
}

/**
 * Stands in for Redis in the memory of **one process**. Stores that share one server compete like several instances.
 * Nothing outside the process sees it, and nothing survives its end.
 */
export class MemoryServer {
  readonly locks: MemoryLocks;
  /** The claim of each tick of each job, as in Redis; see the script claim-tick. */
  readonly claims: ExpiringMap<string>;
  /** What is remembered of jobs. */
  readonly jobs: MemoryJobs;
  /** The last accounted tick, by the lock of its job: its time. */
  readonly lastTicks: ExpiringMap<number>;
  readonly latches: ExpiringMap<MemoryLatch>;
  /** By latch: for each waiting client, when its place expires. */
  readonly latchWaiters: ExpiringMap<Map<string, number>>;
  readonly queues: MemoryQueues;
  /** By resource, and by their ids. */
  readonly watchers: ExpiringMap<Map<string, MemoryWatcher>>;
  /** By client. */
  readonly #inboxes = new Map<string, MemoryInbox>();
  #lastTick = 0;

  constructor(readonly clock: Clock = SYSTEM_CLOCK) {
    this.locks = new MemoryLocks(clock);
    this.claims = new ExpiringMap(clock);
    this.lastTicks = new ExpiringMap(clock);
    this.jobs = new MemoryJobs(clock);
    this.latches = new ExpiringMap(clock);
    this.latchWaiters = new ExpiringMap(clock);
    this.queues = new MemoryQueues(clock);
    this.watchers = new ExpiringMap(clock);
  }

  /**
   * Makes the owner a holder. The caller has checked that it may be one.
   *
   * @param lastsMs how long its lease lasts from now, which may have begun before
   * @returns its new fencing token
   */
  take(request: LockOwner, leaseMs: number, lastsMs = leaseMs, left?: MemoryLock): number {
    const { resource, id: owner, permits, label } = request;
    const fencingToken = this.#mintToken();
    const lock = this.locks.open(resource, request, left);
    lock.acceptTotal(request);
    const grantedAt = this.clock.now();
    lock.put({ owner, fencingToken, depth: 1, grantedAt, permits: permits?.count ?? 1, label }, lastsMs, leaseMs);
    return fencingToken;
  }

  /**
   * Grants the resource to the first living waiter, for the rest of its time, and tells its instance. Goes on with the
   * next waiters while they may share the lock. Drops waiters that can never share it, and those of closed instances.
   *
   * @param asking the owner that asks: its reply tells it, so grants stop before it
   * @param left the lock that its last member has just left; its number of permits still counts for the next waiter
   * @param isPassedOn whether the same step takes it for its next owner, so that it is never free
   */
  grantWaiting(resource: string, asking?: string, left?: MemoryLock, isPassedOn = false): void {
    const last = left?.mode === 'semaphore' ? left : undefined;
    for (let next = this.queues.first(resource); next; next = this.queues.first(resource)) {
      const { owner, expiresAt, sentAt, leaseMs } = next;
      if (owner === asking) return;
      const lock = this.locks.get(resource) ?? last;
      const isMismatch = lock?.isMismatch(next) ?? false;
      if (lock && !isMismatch && !lock.admits(next)) return;
      this.queues.leave(resource, owner);
      const inbox = this.#inboxes.get(clientOf(owner));
      if (isMismatch || inbox === undefined) continue;
      const fencingToken = this.take({ ...next, id: owner, resource }, leaseMs, expiresAt - this.clock.now(), last);
      // Later, as a message over a connection would: no caller is called back inside its own call.
      const isFor = (other: string): boolean => other === owner;
      void later(() => inbox.granted({ resource, fencingToken, sentAt, isFor }));
    }
    if (!isPassedOn && !this.locks.get(resource)) this.#tellWatchers(resource);
  }

  /** The watcher is told when the resource is free, unless it is. @returns whether it is free */
  watch(watcher: Watcher, watchMs: number): boolean {
    const { resource, id } = watcher;
    if (!this.locks.get(resource)) this.grantWaiting(resource);
    const isFree = !this.locks.get(resource);
    const watchers = this.watchers.get(resource) ?? new Map<string, MemoryWatcher>();
    watchers.delete(id);
    if (!isFree && watchMs > 0) watchers.set(id, { ...watcher, expiresAt: this.clock.now() + watchMs });
    this.#keepWatchers(resource, watchers);
    return isFree;
  }

  /** Each of them is told once, and is no watcher any more. */
  #tellWatchers(resource: string): void {
    const watchers = this.watchers.get(resource)?.values() ?? [];
    this.watchers.delete(resource);
    for (const { id, mark, expiresAt } of watchers) {
      const inbox = this.#inboxes.get(clientOf(id));
      const isFor = (other: string): boolean => other === id;
      if (expiresAt > this.clock.now()) void later(() => inbox?.freed({ resource, mark, isFor }));
    }
  }

  #keepWatchers(resource: string, watchers: Map<string, MemoryWatcher>): void {
    const now = this.clock.now();
    let leftMs = 0;
    for (const { id, expiresAt } of watchers.values()) {
      leftMs = Math.max(leftMs, expiresAt - now);
      if (expiresAt <= now) watchers.delete(id);
    }
    if (watchers.size > 0) this.watchers.set(resource, watchers, leftMs);
    else this.watchers.delete(resource);
  }

  /**
   * Tells the first waiters when the resource may be free, in place of the end that they were told of. Each one behind
   * another looks a second later, in case those before it have died; see the fragment tell-first-waiters of the scripts.
   *
   * @param knowing how many of the first waiters know it
   */
  tellFirstWaiters(resource: string, endsMs: number, knowing = 0): void {
    let [heard, unheard] = [0, 0];
    for (const { owner, sentAt } of this.queues.living(resource)) {
      if (heard >= TOLD_OF_END || heard + unheard >= TRIED_TO_TELL) return;
      const inbox = this.#inboxes.get(clientOf(owner));
      const leftMs = endsMs + heard * 1_000 + unheard * 250;
      const notice = { resource, leftMs, sentAt, isFor: (other: string): boolean => other === owner };
      if (inbox !== undefined && heard + unheard >= knowing) void later(() => inbox.retained(notice));
      if (inbox !== undefined || heard + unheard < knowing) heard++;
      else unheard++;
    }
  }

  /** The instances that wait for the resource, in order, once for each waiter. */
  listWaiters(resource: string): string[] {
    return this.queues.alive(resource).map(({ owner }) => instanceOf(owner));
  }

  /** The resources that are held or waited for. */
  resources(): string[] {
    return [...new Set([...this.locks.resources(), ...this.queues.resources()])];
  }

  /** Tells a client, later, that a latch is open. */
  tellOpened(clientId: string, name: string, count: number): void {
    void later(() => this.#inboxes.get(clientId)?.opened(name, count));
  }

  /**
   * Opens the inbox of a client.
   *
   * @returns a function that closes it
   */
  openInbox(clientId: string, inbox: MemoryInbox): () => void {
    this.#inboxes.set(clientId, inbox);
    return () => void this.#inboxes.delete(clientId);
  }

  /** Whether nothing of any resource is left: no lock, no latch and no waiter. */
  get isEmpty(): boolean {
    const { locks, queues, latches, latchWaiters, watchers } = this;
    return locks.resources().length === 0 && [queues, latches, latchWaiters, watchers].every(({ size }) => size === 0);
  }

  /** Makes every later fencing tick larger than this one. */
  raiseTick(tick: number): void {
    this.#lastTick = Math.max(this.#lastTick, tick);
  }

  /** Returns a token larger than all before, and never behind the clock. */
  #mintToken(): number {
    this.#lastTick = Math.max(this.#lastTick + 1, fencingTickAt(this.clock.wallNow()));
    return this.#lastTick * TOKENS_PER_FENCING_TICK;
  }
}

/** How many of the first waiters hear of an end that has moved nearer, and how many are tried. */
const TOLD_OF_END = 4;
const TRIED_TO_TELL = 8;

/** How many locks each addition checks. More than one, so that the sweep is faster than the additions. */
const SWEPT_AT_ONCE = 2;

/** The locks in use, by resource. A lock without living holders is removed. */
class MemoryLocks {
  readonly #locks = new Map<string, MemoryLock>();

  constructor(private readonly clock: Clock) {}

  get(resource: string): MemoryLock | undefined {
    const lock = this.#locks.get(resource);
    if (!lock?.isFree) return lock;
    this.#locks.delete(resource);
    return undefined;
  }

  /** Returns the lock in use, the one that was just left, or a new one. */
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

  /**
   * Removes a member.
   *
   * @returns the lock it has left, or nothing if it was no member
   */
  remove(resource: string, owner: string): MemoryLock | undefined {
    const lock = this.get(resource);
    if (lock?.member(owner) === undefined) return undefined;
    lock.remove(owner);
    if (lock.isFree) this.delete(resource);
    return lock;
  }

  /** The longest time an attempt is told to wait, in milliseconds; 0 if the resource is free. */
  ttlMs(resource: string): number {
    return this.get(resource)?.nextEndMs ?? 0;
  }

  /** The resources that are held. */
  resources(): string[] {
    return [...this.#locks.keys()].filter((resource) => this.get(resource));
  }

  /** Removes locks without living holders, so that locks that no call asks for again do not pile up. */
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

/** Calls back after the running code. Not by `queueMicrotask`, which the fake timers of a test runner replace. */
async function later(callback: () => void): Promise<void> {
  await Promise.resolve();
  callback();
}

/** The id under which goes on what an owner has released, and what stays taken. No process makes such an id. */
export function keptId(owner: string): string {
  return `${owner}~`;
}

/** The state of one resource as a client sees it, without the secrets of its holders and waiters. */
export function readState({ locks, queues, clock }: MemoryServer, resource: string, clientId: string): LockState {
  const lock = locks.get(resource);
  const waiters = queues
    .alive(resource)
    .map(({ owner, mode, permits, expiresAt, leaseMs, label: text }): LockWaiter => {
      const { label } = readLabel(text);
      const instanceId = instanceOf(owner);
      const placeMs = Math.max(0, Math.round(expiresAt - clock.now()));
      return {
        instanceId,
        mode,
        ...(permits && { permits: permits.count }),
        ...(label && { label }),
        placeMs,
        leaseMs,
      };
    });
  if (!lock) return { resource, mode: null, holders: [], ttlMs: 0, waiters };
  const { mode, lastEndMs: ttlMs, total, available } = lock;
  const state = { resource, mode, holders: lock.shownTo(clientId), ttlMs, waiters };
  return mode === 'semaphore' ? { ...state, permits: { total, available } } : state;
}
