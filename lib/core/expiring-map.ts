import type { Clock } from './clock.js';

interface Entry<V> {
  readonly value: V;
  readonly expiresAt: number;
}

/** A map whose entries are gone when their time is over, by the injected clock; as keys with a TTL are in Redis. */
export class ExpiringMap<V> {
  readonly #entries = new Map<string, Entry<V>>();

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
    this.#sweep();
    this.#entries.delete(key);
    this.#entries.set(key, { value, expiresAt: this.clock.now() + ttlMs });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  get size(): number {
    for (const key of this.#entries.keys()) this.#live(key);
    return this.#entries.size;
  }

  #live(key: string): Entry<V> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.expiresAt > this.clock.now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  /** Forgets the oldest entries as far as they are over, so that keys nobody asks for again do not pile up. */
  #sweep(): void {
    for (const key of this.#entries.keys()) if (this.#live(key)) return;
  }
}
