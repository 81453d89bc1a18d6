import type { Clock } from './clock.js';

interface Entry<V> {
  readonly value: V;
  readonly expiresAt: number;
}

/** How many entries each write checks. More than one, so that the sweep is faster than the writes. */
const SWEPT_AT_ONCE = 3;

/** A map with entries that expire by the injected clock, like keys with a TTL in Redis. */
export class ExpiringMap<V> {
  readonly #entries = new Map<string, Entry<V>>();
  /** Where the sweep continues. An iterator of a Map tolerates additions and removals. */
  #cursor = this.#entries.keys();

  constructor(private readonly clock: Clock) {}

  get(key: string): V | undefined {
    return this.#live(key)?.value;
  }

  set(key: string, value: V, ttlMs: number): void {
    this.#sweep();
    this.#entries.delete(key);
    this.#entries.set(key, { value, expiresAt: this.clock.now() + ttlMs });
  }

  /** How many entries are in memory, including expired ones that are not removed yet. */
  get room(): number {
    return this.#entries.size;
  }

  #live(key: string): Entry<V> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.expiresAt > this.clock.now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  /**
   * Checks the next few entries, in a circle, and removes the expired ones, so that keys that are never read again do
   * not pile up. Beside n living entries, about n expired ones remain at most.
   */
  #sweep(): void {
    for (let looks = 0; looks < SWEPT_AT_ONCE; looks++) {
      const { done, value } = this.#cursor.next();
      if (done) {
        this.#cursor = this.#entries.keys();
        return;
      }
      this.#live(value);
    }
  }
}
