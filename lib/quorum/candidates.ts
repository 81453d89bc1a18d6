import { LOCK_DEFAULTS } from '../kernel/api/lock-options.js';
import type { LockOwner } from '../kernel/store/lock-store.js';
import { entryOf, sweep } from '../kernel/util/objects.js';
import { Candidate } from './candidate.js';
import type { QuorumDeps } from './node.js';

const NONE: readonly Candidate[] = [];

/** The candidates and holders of this process, by owner id. Each is kept for as long as the nodes may know it. */
export class Candidates {
  readonly #byId = new Map<string, Candidate>();
  readonly #byResource = new Map<string, Set<Candidate>>();
  /**
   * Ids that were silent for longer than their lease, for example because the event loop was blocked. Until then they
   * may ask again.
   */
  readonly #forgotten = new Map<string, number>();

  constructor(private readonly deps: QuorumDeps) {}

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): Candidate | undefined {
    return this.#byId.get(id);
  }

  of(resource: string): Iterable<Candidate> {
    return this.#byResource.get(resource) ?? NONE;
  }

  /** Returns the candidate of this owner; a new one if there is none, or if it has ended. */
  open(owner: LockOwner): Candidate {
    const candidate = this.#byId.get(owner.id);
    if (candidate && !candidate.isOver) return candidate;
    const isBack = candidate !== undefined || (this.#forgotten.get(owner.id) ?? -Infinity) > this.deps.clock.now();
    return this.#add(new Candidate(owner, this.deps, isBack));
  }

  #add(candidate: Candidate): Candidate {
    const { resource, id } = candidate.owner;
    this.#forgetSilent();
    this.delete(id);
    this.#byId.set(id, candidate);
    entryOf(this.#byResource, resource, () => new Set()).add(candidate);
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

  #forgetSilent(): void {
    const now = this.deps.clock.now();
    const isSilent = ({ touchedAt, leaseMs }: Candidate): boolean => now > touchedAt + leaseMs;
    sweep(this.#forgotten, (until) => until <= now);
    sweep(this.#byId, isSilent, (id, candidate) => {
      candidate.end(true);
      this.delete(id);
      // Releases of its possible locks are repeated for no longer than this.
      this.#forgotten.set(id, now + 2 * Math.max(candidate.leaseMs, LOCK_DEFAULTS.leaseMs));
    });
  }
}
