import type { Clock } from './clock.js';

interface Entry<V> {
  readonly value: V;
  readonly expiresAt: number;
}

/** How many entries each write looks at. More than one, so that the sweep is faster than what is written. */
const SWEPT_AT_ONCE = 3;

/** A map whose entries are gone when their time is over, by the injected clock; as keys with a TTL are in Redis. */
export class ExpiringMap<V> {
  readonly #entries = new Map<string, Entry<V>>();
  /** Where the sweep goes on. An iterator of a Map goes on through whatever is added and removed meanwhile. */
  #cursor = this.#entries.keys();

  constructor(private readonly clock: Clock) {}

  get(key: string): V | undefined {
    return this.#live(key)?.value;
  }

  /** What is left of the entry, in whole milliseconds; 0 where there is none. */
  ttlMs(key: string): number {
    const entry = this.#live(key);
    return entry ? Math.ceil(entry.expiresAt - this.clock.now()) : 0;
  }

  set(key: string, value: V, ttlMs: number): void {
    this.#write(key, value, this.clock.now() + ttlMs);
  }

  /** The entry is as given now, and lasts at least this much longer. */
  lengthen(key: string, value: V, ttlMs: number): void {
    this.#write(key, value, Math.max(this.clock.now() + ttlMs, this.#live(key)?.expiresAt ?? 0));
  }

  /** The entry is as given now, and ends when it would have. */
  replace(key: string, value: V): void {
    const entry = this.#live(key);
    if (entry) this.#entries.set(key, { ...entry, value });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  get size(): number {
    return this.keys().length;
  }

  /** How many take room, those that are over and not forgotten yet among them. */
  get room(): number {
    return this.#entries.size;
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#live(key));
  }

  values(): V[] {
    return this.keys().map((key) => this.#entries.get(key)!.value);
  }

  #write(key: string, value: V, expiresAt: number): void {
    this.#sweep();
    this.#entries.delete(key);
    this.#entries.set(key, { value, expiresAt });
  }

  #live(key: string): Entry<V> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.expiresAt > this.clock.now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  /**
   * Looks at the next few entries, round and round, and forgets those that are over: so keys that are never read again
   * do not pile up, also behind one that lives for long. Of n entries that live, no more than about n that are over are
   * left.
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
