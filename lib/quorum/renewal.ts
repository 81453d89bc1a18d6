import type { QuorumContender } from './candidate.js';
import type { QuorumDeps } from './deps.js';
import { decide } from './majority.js';

/**
 * Lengthens a lease at a majority. Where a node does not have it any more, it asks for the vote again, unless the lock is known to be lost.
 *
 * @param exactly whether the lease is to be as long as that even where it is longer
 */
export async function renewAtNodes(
  holder: QuorumContender,
  leaseMs: number,
  exactly: boolean | undefined,
  deps: QuorumDeps,
): Promise<boolean> {
  holder.touch(leaseMs);
  const lost: number[] = [];
  let isHeld = true;
  let isAnswered = false;
  try {
    isHeld = await decide(deps.nodes, deps, {
      send: ({ store }, index) => store.renew(holder.seats[index]!.ownership, leaseMs, exactly),
      refuted: (index) => (isAnswered ? isHeld && holder.regain(index) : lost.push(index)),
    });
    return isHeld;
  } finally {
    // Before the caller goes on, who may release it.
    isAnswered = true;
    if (isHeld) for (const index of lost) holder.regain(index);
  }
}
