import { milliseconds, type OptionsOf, OptionTable } from '../api/option-table.js';
import type { HealthProblem, LockTopology } from '../store/store-probe.js';

/** What `locks.health()` takes. */
export interface HealthOptions {
  /**
   * How long to wait for Redis. A server that has not answered by then is down. The default is less than the second
   * that Kubernetes waits.
   *
   * @allowed 1 ms to 60 s
   * @default 800
   */
  timeoutMs?: number;
}

export const HEALTH_OPTIONS = new OptionTable({
  timeoutMs: milliseconds(1, 60_000).default(800),
} satisfies OptionsOf<HealthOptions>);

/** One leadership that this process campaigns for. */
export interface LeadershipHealth {
  readonly name: string;
  /** Whether this process leads. */
  readonly isLeader: boolean;
}

/** What `locks.health()` resolves to. It has no addresses, no names of resources and no credentials. */
export interface LockHealth {
  /**
   * `up`: a lock could be taken now. `degraded`: so too, but something is wrong, and `problems` says what. `down`: no
   * lock, or not every lock, could be taken now.
   */
  readonly status: 'up' | 'degraded' | 'down';
  readonly topology: LockTopology;
  /**
   * How long a script that writes took, in milliseconds: on the slowest server that was needed. `null` if too few
   * servers have answered.
   */
  readonly roundTripMs: number | null;
  /** How many servers there are, how many must be up, and how many are. */
  readonly servers: { readonly total: number; readonly needed: number; readonly up: number };
  /** What is wrong. Empty when `status` is `up`. */
  readonly problems: readonly HealthProblem[];
  /** How many leases this process holds, those of leaderships and jobs among them. */
  readonly held: number;
  /** How many calls of this process wait for a lock. Candidates for a leadership are not counted. */
  readonly waiting: number;
  /** How long the oldest of those calls has waited, in milliseconds; 0 if none waits. */
  readonly oldestWaitMs: number;
  /** How long ago a renewal failed last, in milliseconds; `null` if none has failed. */
  readonly lastRenewalFailureMs: number | null;
  /** The leaderships that this process campaigns for. */
  readonly leaderships: readonly LeadershipHealth[];
}
