import type { Clock } from '../util/clock.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { LockOwner, PushedGrant } from './lock-store.js';

/** How long the lock may live, and how long one command may take. */
export type Limits = Pick<ResolvedLockOptions, 'leaseMs' | 'attemptTimeoutMs'>;

/** One that waits no more, though the store may still grant it what it has asked for. */
export interface Departed {
  readonly ownership: LockOwner;
  readonly limits: Limits;
}

interface Entry extends Departed {
  readonly endsAt: number;
  /** How many of its questions are not answered yet. */
  unanswered: number;
  heardToken: number;
}

/** More are not expected of one resource, or at all: the oldest are forgotten, and what they are granted expires by itself. */
const MOST = { ofResource: 16, resources: 10_000 };
/** So many are looked at for each that comes: more than come, so that none is forgotten forever. */
const SWEPT_AT_ONCE = 2;

/**
 * Contenders that wait no more while something they have asked may still be executed, as where a connection broke. What they
 * are granted by then has to be given back. Anybody else whom a grant message may be for is none of this client's.
 */
export class LateGrants {
  readonly #byResource = new Map<string, Entry[]>();

  constructor(private readonly clock: Clock) {}

  /** How many resources it keeps in mind. */
  get size(): number {
    return this.#byResource.size;
  }

  /** @param unanswered how many of its questions may still be executed */
  expect(ownership: LockOwner, { leaseMs, attemptTimeoutMs }: Limits, unanswered: number): void {
    this.#sweep();
    const { resource } = ownership;
    const entries = this.#byResource.get(resource)?.slice(1 - MOST.ofResource) ?? [];
    // One that is executed about now has its place, and then its lease, for so long.
    const endsAt = this.clock.now() + 2 * leaseMs;
    // The options of a call have a signal of the caller's, which is not to be kept for so long.
    const limits = { leaseMs, attemptTimeoutMs };
    entries.push({ ownership, limits, endsAt, unanswered, heardToken: 0 });
    this.#byResource.delete(resource);
    this.#byResource.set(resource, entries);
  }

  /** One of its questions is answered. After the last one nothing is expected of it. */
  answered({ resource, id: owner }: LockOwner): void {
    const entries = this.#byResource.get(resource);
    const entry = entries?.find(({ ownership }) => ownership.id === owner);
    if (entry === undefined || --entry.unanswered > 0) return;
    if (entries!.length === 1) this.#byResource.delete(resource);
    else entries!.splice(entries!.indexOf(entry), 1);
  }

  /** Whom a grant is for, if it is one of these. Once for each grant, however often its message comes. */
  claim(grant: PushedGrant): Departed | undefined {
    const entry = this.#byResource.get(grant.resource)?.find(({ ownership }) => grant.isFor(ownership.id));
    if (entry === undefined || entry.heardToken >= grant.fencingToken) return undefined;
    entry.heardToken = grant.fencingToken;
    return entry;
  }

  #sweep(): void {
    const now = this.clock.now();
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept++) {
      const [oldest] = this.#byResource;
      if (oldest === undefined) return;
      const [resource, entries] = oldest;
      const alive = entries.filter(({ endsAt }) => endsAt > now);
      this.#byResource.delete(resource);
      const isCrowded = this.#byResource.size >= MOST.resources - 1;
      if (alive.length > 0 && !isCrowded) this.#byResource.set(resource, alive);
    }
  }
}
