import { LOCK_DEFAULTS } from '../core/api/lock-options.js';
import type { LockOwner } from '../core/store/lock-store.js';
import { Candidate } from './candidate.js';
import type { QuorumDeps } from './node.js';
import type { Clock } from '../core/util/clock.js';

/** For each new candidate this many old ones are checked: more than one, so that the check reaches all of them. */
const CHECKED_AT_ONCE = 2;

const NONE: readonly Candidate[] = [];

/** The candidates and holders of this process, by owner id. Each is kept for as long as the nodes may know it. */
export class Candidates {
  readonly #byId = new Map<string, Candidate>();
  readonly #byResource = new Map<string, Set<Candidate>>();
  /** Ids that were silent for longer than their lease, such as when the process stood still, and that may ask again. */
  readonly #forgotten: ExpiringMap<true>;

  constructor(private readonly deps: QuorumDeps) {
    this.#forgotten = new ExpiringMap(deps.clock);
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): Candidate | undefined {
    return this.#byId.get(id);
  }

  /** The candidates and holders of this resource. */
  of(resource: string): Iterable<Candidate> {
    return this.#byResource.get(resource) ?? NONE;
  }

  /** The candidate of this owner; a new one if there is none, or if it is over. */
  open(owner: LockOwner): Candidate {
    const candidate = this.#byId.get(owner.id);
    if (candidate && !candidate.isOver) return candidate;
    const isBack = candidate !== undefined || this.#forgotten.get(owner.id) !== undefined;
    return this.#add(new Candidate(owner, this.deps, isBack));
  }

  /** Adds a holder that was granted the lock in another process. */
  adopt(owner: LockOwner, leaseMs: number): Candidate {
    return this.#add(Candidate.adopt(owner, leaseMs, this.deps));
  }

  #add(candidate: Candidate): Candidate {
    const { resource, id } = candidate.owner;
    this.#forgetSilent();
    this.delete(id);
    this.#byId.set(id, candidate);
    const others = this.#byResource.get(resource);
    if (others) others.add(candidate);
    else this.#byResource.set(resource, new Set([candidate]));
    return candidate;
  }

  delete(id: string): void {
    const candidate = this.#byId.get(id);
    if (candidate === undefined) return;
    const { resource } = candidate.owner;
    const others = this.#byResource.get(resource);
    this.#byId.delete(id);
    others?.delete(candidate);
    if (others?.size === 0) this.#byResource.delete(resource);
  }

  /** Checks the candidates that were not checked for the longest time. */
  #forgetSilent(): void {
    const now = this.deps.clock.now();
    for (let checked = 0; checked < CHECKED_AT_ONCE; checked++) {
      const [oldest] = this.#byId;
      if (oldest === undefined) return;
      const [id, candidate] = oldest;
      if (now <= candidate.touchedAt + candidate.leaseMs) {
        this.#byId.delete(id);
        this.#byId.set(id, candidate);
      } else this.#forget(candidate);
    }
  }

  #forget(candidate: Candidate): void {
    candidate.end(true);
    this.delete(candidate.owner.id);
    // Releases of what it may have had are repeated for no longer than this.
    const keepMs = 2 * Math.max(candidate.leaseMs, LOCK_DEFAULTS.leaseMs);
    this.#forgotten.set(candidate.owner.id, true, keepMs);
  }
}

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
