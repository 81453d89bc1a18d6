import type { FaultSpan } from '../history/history.js';
import { ANSWER_MS } from '../worker/settings.js';

/** The bounds between slow and late, in milliseconds. */
export interface Bounds {
  /** The time that a call may take beyond its `waitMs`, apart from faults of its process or of Redis. @default 3000 */
  readonly overdueMs: number;
  /** The time that a free resource may wait for its next holder beyond a heartbeat. @default 1000 */
  readonly idleMs: number;
  /** The delay after the deadline in which a running event loop must notice a loss. @default 250 */
  readonly lossMs: number;
  /** The slowest answer of a healthy Redis: a call with less time than this may get none. @default 500 */
  readonly slowMs: number;
  /** For how long a worker waits for an answer at least. @default {@link ANSWER_MS} */
  readonly answerMs: number;
  /** The step of the clock of Redis: its entries of dead owners may last longer by this much. @default 60000 */
  readonly clockStepMs: number;
  /**
   * `true` if votes are counted: if several take over the same lease at once, none may get it, and readers beside one
   * another may have the same token. @default false
   */
  readonly splitsVotes: boolean;
  /** Returns true for faults that only lose messages: waiters ask again, so resources are still granted under them. */
  readonly losesMessages: (fault: FaultSpan) => boolean;
}

export const BOUNDS: Bounds = {
  overdueMs: 3_000,
  idleMs: 1_000,
  lossMs: 250,
  slowMs: 500,
  answerMs: ANSWER_MS,
  clockStepMs: 60_000,
  splitsVotes: false,
  losesMessages: ({ kind }) => /subscriber|message/i.test(kind),
};

/** A place is kept so often at least, before jitter. */
const MAX_KEEP_MS = 15_000;

/**
 * The longest time until a waiter asks again, or its place is kept, which finds a grant as well: a third of a lease, with the jitter of a
 * quarter.
 */
export function heartbeatMs(leaseMs: number): number {
  return Math.min(MAX_KEEP_MS, leaseMs / 3) * 1.25;
}
