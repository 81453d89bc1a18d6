import { AsyncLocalStorage } from 'node:async_hooks';
import { inRootContext } from '../util/async-contexts.js';
import { sharedByCopies } from '../util/objects.js';
import type { Hold } from './hold.js';
import type { LocalHolder } from './store-lease.js';
import type { Lease } from '../api/lease.js';
import type { Clock } from '../util/clock.js';
import type { LockObservers } from '../events/observers.js';
import { settle } from '../util/promises.js';

/** A lease that an async context holds, and the leases held around it. */
interface ContextEntry {
  /** The lock client it belongs to: applications in one process do not see each other's leases. */
  readonly space: object;
  readonly lease: Lease & {
    readonly holds: readonly Hold[];
    /** `true` once its release has begun. Its holds may still have other leases. */
    readonly isReleased: boolean;
  };
  outer: ContextEntry | undefined;
}

const storage = sharedByCopies('async-context:1', () => new AsyncLocalStorage<ContextEntry>());

/**
 * Knows which leases the running async context holds. A released lease does not count, even if a context still has it.
 */
export class LockContext {
  /** Runs the work so that everything it calls or awaits sees the lease. */
  run<T>(lease: ContextEntry['lease'], work: () => T): T {
    return storage.run({ space: this, lease, outer: unreleased(storage.getStore()) }, work);
  }

  /** Runs the work outside the async context of any caller, so that it holds nothing. */
  outside<T>(work: () => T): T {
    return inRootContext(work);
  }

  hold(resource: string): Hold | undefined {
    if (storage.getStore() === undefined) return undefined; // nearly always
    return this.#find(({ owner }) => owner.resource === resource);
  }

  #find(isMeant: (hold: Hold) => boolean): Hold | undefined {
    for (const { lease } of this.#entries()) {
      const hold = lease.holds.find((each) => isMeant(each) && each.checkHeld());
      if (hold) return hold;
    }
    return undefined;
  }

  held(): Hold[] {
    return [...this.#entries()].flatMap(({ lease }) => lease.holds.filter((hold) => hold.checkHeld()));
  }

  isInWork(): boolean {
    return storage.getStore() !== undefined && this.#find(() => true) !== undefined; // nearly always false
  }

  /** See `Runtime.shutdownSignal`. */
  shutdownSignal(closing: AbortSignal, drained: AbortSignal): AbortSignal {
    return this.isInWork() ? drained : closing;
  }

  permits(resource: string): number {
    if (storage.getStore() === undefined) return 0; // nearly always
    const held = this.held().filter(({ owner }) => owner.resource === resource);
    return held.reduce((permits, { storeLease }) => permits + (storeLease.permits?.count ?? 0), 0);
  }

  has(holder: LocalHolder): boolean {
    for (const { lease } of this.#entries()) {
      const holders: readonly LocalHolder[] = lease.holds;
      if (holders.includes(holder)) return true;
    }
    return false;
  }

  /** The innermost lease that is not released, of the resource if one is named. A lost lease is still returned. */
  lease(resource?: string): Lease | undefined {
    for (const { lease } of this.#entries()) {
      if (resource === undefined || lease.resources.includes(resource)) return lease;
    }
    return undefined;
  }

  resources(): string[] {
    return [...new Set([...this.#entries()].flatMap(({ lease }) => lease.resources))];
  }

  /**
   * Returns the leases from the inside out. Drops released leases: otherwise, work that is never awaited would keep an
   * endless chain.
   */
  *#entries(): Generator<ContextEntry> {
    for (let entry = unreleased(storage.getStore()); entry; entry = entry.outer = unreleased(entry.outer)) {
      if (entry.space === this) yield entry;
    }
  }
}

function unreleased(entry: ContextEntry | undefined): ContextEntry | undefined {
  while (entry?.lease.isReleased) entry = entry.outer;
  return entry;
}

/**
 * The locks that work of this process still uses. A shutdown waits for them. Each hold knows its place in the list: at a
 * hand-over inside a process, a `Set` with hardly an entry is the larger part of what changes.
 */
export class ActiveHolds {
  readonly #holds: Hold[] = [];
  readonly #emptyListeners = new Set<() => void>();

  get size(): number {
    return this.#holds.length;
  }

  add(hold: Hold): void {
    if (hold.activeIndex !== -1) return;
    hold.activeIndex = this.#holds.length;
    this.#holds.push(hold);
  }

  delete(hold: Hold): void {
    const { activeIndex } = hold;
    if (activeIndex !== -1) {
      hold.activeIndex = -1;
      const last = this.#holds.pop()!;
      if (last !== hold) {
        this.#holds[activeIndex] = last;
        last.activeIndex = activeIndex;
      }
    }
    if (this.#holds.length > 0 || this.#emptyListeners.size === 0) return;
    for (const listener of this.#emptyListeners) listener();
  }

  list(): Hold[] {
    return [...this.#holds];
  }

  async whenEmpty(clock: Clock, patienceMs: number): Promise<void> {
    if (this.size === 0 || patienceMs <= 0) return;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        timer.cancel();
        this.#emptyListeners.delete(settle);
        resolve();
      };
      const timer = clock.setTimer(settle, patienceMs);
      this.#emptyListeners.add(settle);
    });
  }
}

/** Shorter waits emit no event: each deployment finds work that is about to end, or leaders that resign. */
const UNNOTICED_MS = 250;

interface DrainDeps {
  readonly active: ActiveHolds;
  readonly clock: Clock;
  readonly observers: LockObservers;
}

/** Waits up to `drainMs` for the leases that work of this process still holds, and reports the drain. */
export async function drain({ active, clock, observers }: DrainDeps, drainMs: number): Promise<void> {
  const startedAt = clock.now();
  const held = (): string[] => active.list().map(({ owner }) => owner.resource);
  // Leaders step down at this moment. One that is idle loses nothing, even if there is no time for work to end.
  if (active.size > 0) await settle();
  await active.whenEmpty(clock, Math.min(UNNOTICED_MS, drainMs));
  if (active.size === 0 || drainMs === 0) return;
  if (drainMs > UNNOTICED_MS) {
    observers.emit({ type: 'draining', service: observers.service, resources: held(), drainMs });
    await active.whenEmpty(clock, drainMs - UNNOTICED_MS);
  }
  observers.emit({
    type: 'drained',
    service: observers.service,
    resources: held(),
    waitedMs: clock.now() - startedAt,
  });
}
