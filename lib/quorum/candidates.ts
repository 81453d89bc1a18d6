import { ExpiringMap } from '../core/util/expiring-map.js';
import { LOCK_DEFAULTS } from '../core/api/lock-options.js';
import type { LockOwner } from '../core/store/lock-store.js';
import { Candidate } from './candidate.js';
import type { QuorumDeps } from './deps.js';

/** So many are looked at for each that comes: more than come, so that none is forgotten forever. */
const SWEPT_AT_ONCE = 2;

/** What is known of the owners that contend, or hold. Nobody is kept for longer than what it may have at the nodes. */
export class Candidates {
  readonly #candidates = new Map<string, Candidate>();
  readonly #byResource = new Map<string, Set<Candidate>>();
  /** Those of whom nothing was heard for so long, as when the process stood still, and who may ask again. */
  readonly #forgotten: ExpiringMap<true>;

  constructor(private readonly deps: QuorumDeps) {
    this.#forgotten = new ExpiringMap(deps.clock);
  }

  get size(): number {
    return this.#candidates.size;
  }

  get(owner: string): Candidate | undefined {
    return this.#candidates.get(owner);
  }

  /** All that want this resource, or hold it. */
  of(resource: string): Iterable<Candidate> {
    return this.#byResource.get(resource) ?? NONE;
  }

  open(ownership: LockOwner): Candidate {
    const contender = this.#candidates.get(ownership.id);
    if (contender && !contender.isOver) return contender;
    const isBack = contender !== undefined || this.#forgotten.get(ownership.id) !== undefined;
    return this.#add(new Candidate(ownership, this.deps, isBack));
  }

  /** One that holds what it was given elsewhere. */
  adopt(ownership: LockOwner, leaseMs: number): Candidate {
    return this.#add(Candidate.adopt(ownership, leaseMs, this.deps));
  }

  #add(contender: Candidate): Candidate {
    const { resource, id: owner } = contender.ownership;
    this.#sweep();
    this.delete(owner);
    this.#candidates.set(owner, contender);
    const others = this.#byResource.get(resource);
    if (others) others.add(contender);
    else this.#byResource.set(resource, new Set([contender]));
    return contender;
  }

  delete(owner: string): void {
    const contender = this.#candidates.get(owner);
    if (contender === undefined) return;
    const { resource } = contender.ownership;
    const others = this.#byResource.get(resource);
    this.#candidates.delete(owner);
    others?.delete(contender);
    if (others?.size === 0) this.#byResource.delete(resource);
  }

  #sweep(): void {
    const now = this.deps.clock.now();
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept++) {
      const [oldest] = this.#candidates;
      if (oldest === undefined) return;
      const [owner, contender] = oldest;
      if (now <= contender.touchedAt + contender.leaseMs) {
        this.#candidates.delete(owner);
        this.#candidates.set(owner, contender);
      } else this.#forget(contender);
    }
  }

  #forget(contender: Candidate): void {
    contender.end(true);
    this.delete(contender.ownership.id);
    // As long as anything is released again and again that it may have had.
    const keepMs = 2 * Math.max(contender.leaseMs, LOCK_DEFAULTS.leaseMs);
    this.#forgotten.set(contender.ownership.id, true, keepMs);
  }
}

const NONE: readonly Candidate[] = [];
