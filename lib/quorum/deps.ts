import type { PushedGrant } from '../core/store/lock-store.js';
import type { QuorumNode, QuorumTiming } from './node.js';
import type { Random } from '../core/util/random.js';

/** What all that happens at a quorum has in common. */
export interface QuorumDeps extends QuorumTiming {
  readonly nodes: readonly QuorumNode[];
  readonly majority: number;
  readonly random: Random;
  /** Whether the largest token of the votes is written back to a majority before anything is granted. */
  readonly fencing: boolean;
  /** Tells of what was granted without having been answered. */
  readonly granted: (grant: PushedGrant) => void;
  /** Another number each time. */
  readonly newAttempt: () => number;
}
