import type { Candidate } from './candidate.js';
import type { QuorumDeps } from './deps.js';
import { askMajority } from './majority.js';

/**
 * Lengthens a lease at a majority. Where a node does not have it any more, it asks for the vote again, unless the lock is known to be lost.
 *
 * @param exactly whether the lease is to be as long as that even where it is longer
 */
export async function renewAtNodes(
  holder: Candidate,
  leaseMs: number,
  exactly: boolean | undefined,
  deps: QuorumDeps,
): Promise<boolean> {
  holder.touch(leaseMs);
  const lost: number[] = [];
  let isHeld = true;
  let isAnswered = false;
  try {
    isHeld = await askMajority(deps.nodes, deps, {
      send: ({ store }, index) => store.renew(holder.atNodes[index]!.ownership, leaseMs, exactly),
      refuted: (index) => (isAnswered ? isHeld && holder.reclaimVote(index) : lost.push(index)),
    });
    return isHeld;
  } finally {
    // Before the caller goes on, who may release it.
    isAnswered = true;
    if (isHeld) for (const index of lost) holder.reclaimVote(index);
  }
}
