import type { Clock } from '../util/clock.js';
import type { Hold } from './hold.js';
import type { LockObservers } from '../events/observers.js';
import { settle } from '../util/promises.js';

/** The locks that work of this process still uses. A shutdown waits for them. */
export class ActiveHolds {
  readonly #holds = new Set<Hold>();
  readonly #emptyListeners = new Set<() => void>();

  get size(): number {
    return this.#holds.size;
  }

  add(hold: Hold): void {
    this.#holds.add(hold);
  }

  delete(hold: Hold): void {
    this.#holds.delete(hold);
    if (this.#holds.size === 0) for (const listener of this.#emptyListeners) listener();
  }

  list(): Hold[] {
    return [...this.#holds];
  }

  /** Waits until none is left, but no longer than `patienceMs`. */
  async whenEmpty(clock: Clock, patienceMs: number): Promise<void> {
    if (this.#holds.size === 0 || patienceMs <= 0) return;
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

/**
 * A wait that is over so soon is no event: each deployment finds work that is about to end, and leaders that resign.
 */
const UNNOTICED_MS = 250;

interface DrainDeps {
  readonly active: ActiveHolds;
  readonly clock: Clock;
  readonly observers: LockObservers;
}

/** Waits up to `drainMs` for the leases that the work of this process still holds, and tells the observers. */
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
