import type { ServerOptions } from '../world/server.js';

/** Time to wait for a reply of Redis, if the lease isn't longer: replies are slow on a busy machine. */
export const ANSWER_MS = 600;
/** Leases that are longer are as users have them, and so is the time for an answer. */
const LONG_LEASE_MS = 5_000;
const USUAL_ANSWER_MS = 1_000;

/** For how long a worker with such leases waits for an answer. */
export function answerMsOf(leaseMs: number, shortestMs = ANSWER_MS): number {
  return leaseMs > LONG_LEASE_MS ? USUAL_ANSWER_MS : Math.max(leaseMs, shortestMs);
}

/** The ways to lock that a caller chooses from. */
export type Way =
  | 'exclusive'
  | 'using'
  | 'polled'
  | 'tried'
  | 'hasty'
  | 'aborted'
  | 'reentrant'
  | 'read'
  | 'write'
  | 'permits'
  | 'lowered'
  | 'kept'
  | 'several'
  | 'impatient'
  | 'mixed';

/** The settings of a worker (the environment variable CHAOS_WORKER, as JSON). */
export interface WorkerSettings {
  readonly instanceId: string;
  readonly server: ServerOptions;
  readonly keyPrefix: string;
  readonly leaseMs: number;
  /** The path of its log. */
  readonly history: string;
  /** The socket of the witness. */
  readonly witness?: string;
  readonly seed: number;
  /** The number of concurrent callers. */
  readonly callers: number;
  /** The weight of each way. */
  readonly ways: Readonly<Partial<Record<Way, number>>>;
  /** The number of resources of each kind. */
  readonly resources: number;
  /** The percentage of long holds, of up to one and a half leases. The others last a few milliseconds at most. */
  readonly longHolds: number;
  /** `true` makes it a candidate for a leadership and a runner of a job's ticks. */
  readonly campaigns?: boolean;
  readonly ticks?: boolean;
  /** `true` makes it observe the queues instead of working. */
  readonly observes?: boolean;
}

/** A command of the harness to a running worker. */
export type Command = { readonly type: 'block'; readonly ms: number } | { readonly type: 'close' };
