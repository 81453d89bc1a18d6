import { LOCK_DEFAULTS } from '../core/api/lock-options.js';
import type { LockOwner } from '../core/store/lock-store.js';
import type { Candidate } from './candidate.js';
import type { QuorumDeps } from './deps.js';
import { askMajority, enoughToDeny } from './majority.js';

/**
 * Releases what an owner has at all nodes; at those that do not answer in time again and again, in the background.
 *
 * @param contender what is known here of it, if anything is
 * @returns whether it was held, as far as a majority knows
 */
export function releaseAtNodes(
  ownership: LockOwner,
  contender: Candidate | undefined,
  lazily: boolean | undefined,
  deps: QuorumDeps,
): Promise<boolean> {
  const { nodes } = deps;
  const seats = contender?.atNodes;
  const leaseMs = contender?.leaseMs ?? LOCK_DEFAULTS.leaseMs;
  contender?.end();
  seats?.forEach((seat) => seat.leave());
  const released = askMajority(nodes, deps, {
    send: ({ store }, index) => store.release(seats?.[index]!.ownership ?? ownership, lazily),
    enoughNos: enoughToDeny(nodes.length),
    // What is not answered is asked again, in the background: a lost minority is not the caller's business.
    inDoubt: true,
    confirmed: (index) => seats?.[index]!.left(true, leaseMs),
    refuted: (index) => seats?.[index]!.left(false, leaseMs),
    missed: (index) => {
      const seat = seats?.[index];
      seat?.left(true, leaseMs);
      if (seat?.isTaken ?? true) nodes[index]!.withdraw(seat?.ownership ?? ownership, leaseMs);
    },
  });
  seats?.forEach(({ node, leaving }) => leaving && node.withdraw(leaving, leaseMs));
  return released;
}
