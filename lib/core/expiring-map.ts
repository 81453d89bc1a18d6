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

  /** Forgets the oldest entries as far as they are over, so that keys nobody asks for again do not pile up. */
  #sweep(): void {
    for (const key of this.#entries.keys()) if (this.#live(key)) return;
  }
}
