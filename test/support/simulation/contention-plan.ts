import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import type { NetworkOptions } from './simulated-process.js';

/** One call that the simulation makes. */
export interface CallPlan {
  readonly at: number;
  readonly on: number;
  /** One, or several that are wanted at once. */
  readonly resources: readonly string[];
  readonly kind: 'acquire' | 'using' | 'tryAcquire' | 'poll';
  readonly options: LockOptions;
  /** Its semaphore permits; `undefined` for a lock. */
  readonly permits: { readonly count: number; readonly total: number } | undefined;
  /** The duration of the section under the lock. */
  readonly sectionMs: number;
  /** The caller gives up after this. */
  readonly abortMs: number | undefined;
  /** Of one that polls: its strategy throws after so many attempts. */
  readonly throwsAfter: number | undefined;
  /** In the middle of the section: nothing, or the lease is extended to so many milliseconds. */
  readonly extendMs: number | undefined;
  /** In the middle of the section: a writer becomes a reader, and of several permits one is released. */
  readonly isDowngraded: boolean;
  /** A fixed lease may be left to run out. */
  readonly isForgotten: boolean;
}

/** An event in a process, or an action of its users. */
export interface Incident {
  readonly at: number;
  readonly on: number;
  readonly kind: 'kill' | 'vanish' | 'stop' | 'reconnect' | 'forge' | 'forceRelease' | 'resize';
  readonly lastingMs: number;
}

export interface SimulationPlan {
  readonly seed: number;
  readonly instances: number;
  readonly network: NetworkOptions;
  /** `true` if each resource is on a node of its own, otherwise all are on one server. */
  readonly isCluster: boolean;
  readonly calls: readonly CallPlan[];
  readonly incidents: readonly Incident[];
}

/** The resource that is a semaphore. */
export const SEMAPHORE = 'permits';
/** No minimum is longer. */
export const MAX_MIN_HOLD_MS = 200;
/** No lease is longer, where leases are left to expire. */
export const MAX_LEASE_MS = 10_000;
