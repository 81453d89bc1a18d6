import type { FaultSpan } from '../history/history.js';
import { ANSWER_MS } from '../worker/settings.js';

/** What is late, and what is merely slow. All in milliseconds. */
export interface Bounds {
  /** How much longer than its `waitMs` a call may take, apart from the time its process or Redis was struck. @default 3000 */
  readonly overdueMs: number;
  /** How much longer than a heartbeat a free resource may wait for its next holder. @default 1000 */
  readonly idleMs: number;
  /** How long after the deadline a loss may be noticed by a loop that runs. @default 250 */
  readonly lossMs: number;
  /** How slow an answer of Redis may be though nothing is struck: a call with less time than this may hear nothing. @default 500 */
  readonly slowMs: number;
  /** For how long a worker waits for an answer at least. @default {@link ANSWER_MS} */
  readonly answerMs: number;
  /** How far the clock of Redis is moved: what it keeps for the dead may last so much longer. @default 60000 */
  readonly clockStepMs: number;
  /**
   * Whether votes are counted: of several who take over the same lease at once it may be that nobody has it, and readers beside one
   * another may have the same token. @default false
   */
  readonly splitsVotes: boolean;
  /** Faults that lose messages and nothing else: who waits asks again, so resources go on being granted under them. */
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
