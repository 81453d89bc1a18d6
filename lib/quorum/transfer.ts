import type { LockOwner, Transfer } from '../core/store/lock-store.js';
import { askMajority } from './majority.js';
import type { Candidate } from './candidate.js';
import type { QuorumDeps } from './deps.js';

/**
 * Makes another id id the holder at a majority. What is left of the first one elsewhere would stand in the way of the votes for the
 * next, and what has moved where most has not is worth nothing: both are released.
 *
 * @param holder what is known here of the first one, if anything is
 * @returns the token, or `null` where a majority says that the first one is not the id
 */
export async function transferAtNodes(
  ownership: LockOwner,
  transfer: Transfer,
  holder: Candidate | undefined,
  deps: QuorumDeps,
): Promise<number | null> {
  const { nodes } = deps;
  const nameAt = (index: number): LockOwner => holder?.atNodes[index]!.ownership ?? ownership;
  // The tokens of the nodes differ, and the lease has one of them.
  const fencingToken = transfer.fencingToken ?? (holder?.fencingToken || undefined);
  const terms = { ...transfer, ...(fencingToken && { fencingToken }) };
  const tokens: number[] = [];
  const moved = new Set<number>();
  const missed = new Set<number>();
  let isMoved: boolean | undefined;
  const settle = (index: number): void => {
    const node = nodes[index]!;
    if (isMoved === false && moved.has(index)) node.withdraw({ ...ownership, id: transfer.to }, transfer.leaseMs);
    if (isMoved && missed.has(index) && !transfer.share) {
      node.withdraw(nameAt(index), holder?.leaseMs ?? transfer.leaseMs);
    }
  };
  isMoved = await askMajority(nodes, deps, {
    send: async ({ store }, index) => {
      const token = await store.transfer(nameAt(index), terms);
      if (token !== null) tokens.push(token);
      return token !== null;
    },
    confirmed: (index) => {
      moved.add(index);
      settle(index);
    },
    missed: (index) => {
      missed.add(index);
      settle(index);
    },
  });
  nodes.forEach((_, index) => settle(index));
  return isMoved ? mostFrequent(tokens) : null;
}

/** The token that most nodes know; the largest of those. */
function mostFrequent(tokens: readonly number[]): number {
  const countOf = (token: number): number => tokens.filter((other) => other === token).length;
  return tokens.toSorted((a, b) => countOf(b) - countOf(a) || b - a)[0]!;
}
