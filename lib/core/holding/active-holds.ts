import type { Clock } from '../util/clock.js';
import type { Hold } from './hold.js';

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
