import type { ServerOptions } from '../world/server.js';

/** For how long a worker waits for an answer of Redis, where its lease is not longer: an answer takes long on a busy machine. */
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

/** What a worker is told when it starts (the environment variable CHAOS_WORKER, as JSON). */
export interface WorkerSettings {
  readonly instanceId: string;
  readonly server: ServerOptions;
  readonly keyPrefix: string;
  readonly leaseMs: number;
  /** Where it writes what it does. */
  readonly history: string;
  /** The socket of the witness. */
  readonly witness?: string;
  readonly seed: number;
  /** How many callers work at the same time. */
  readonly callers: number;
  /** How often each way is chosen, in parts of their sum. */
  readonly ways: Readonly<Partial<Record<Way, number>>>;
  /** How many resources of each kind there are. */
  readonly resources: number;
  /** How many of a hundred holds are long: up to one and a half leases. The others last a few milliseconds at most. */
  readonly longHolds: number;
  /** Whether it is a candidate for a leadership, and runs the ticks of a job. */
  readonly campaigns?: boolean;
  readonly ticks?: boolean;
  /** Whether it looks at the queues in place of working. */
  readonly observes?: boolean;
}

/** What the harness tells a worker while it runs. */
export type Command = { readonly type: 'block'; readonly ms: number } | { readonly type: 'close' };
