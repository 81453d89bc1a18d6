import { LOCK_DEFAULTS } from '../core/api/lock-options.js';
import type { LockOwner, Retention, Transfer } from '../core/store/lock-store.js';
import type { Candidate } from './candidate.js';
import { askMajority, enoughToDeny } from './majority.js';
import type { QuorumDeps } from './node.js';

/** The owner by which a node knows the lock. A candidate has another one at each node where it has asked anew. */
export function ownerAt(index: number, owner: LockOwner, candidate: Candidate | undefined): LockOwner {
  return candidate?.atNodes[index]?.owner ?? owner;
}

/**
 * Releases what an owner has at all nodes. Releases at nodes that do not answer in time are repeated in the background.
 *
 * @param candidate what this process knows of the owner, if anything
 * @param retention for how long each node leaves the resource taken
 * @returns whether the lock was held, as far as a majority knows
 */
export function releaseAtNodes(
  owner: LockOwner,
  candidate: Candidate | undefined,
  lazily: boolean | undefined,
  deps: QuorumDeps,
  retention?: Retention,
): Promise<boolean> {
  const { nodes, clock } = deps;
  const atNodes = candidate?.atNodes;
  const leaseMs = candidate?.leaseMs ?? LOCK_DEFAULTS.leaseMs;
  const sentAt = clock.now();
  candidate?.end();
  atNodes?.forEach((atNode) => atNode.onReleaseSent());
  const released = askMajority(nodes, deps, {
    send: (node, index) => {
      const present = ownerAt(index, owner, candidate);
      if (!retention) return node.store.release(present, lazily);
      node.retain(present, { retention: () => leftOf(retention, clock.now() - sentAt) });
      return node.store.retain(present, retention, lazily);
    },
    enoughNos: enoughToDeny(nodes.length),
    // The background repeats what has no answer: the caller need not know of a lost minority.
    inDoubt: true,
    confirmed: (index) => atNodes?.[index]!.onReleaseAnswered(true, leaseMs),
    refuted: (index) => atNodes?.[index]!.onReleaseAnswered(false, leaseMs),
    missed: (index) => {
      const atNode = atNodes?.[index];
      atNode?.onReleaseAnswered(true, leaseMs);
      if (atNode?.mayBeThere ?? true) nodes[index]!.releaseOrphan(ownerAt(index, owner, candidate), leaseMs);
    },
  });
  atNodes?.forEach(({ node, leaving }) => leaving && node.releaseOrphan(leaving, leaseMs));
  return released;
}

/** What is left of it when it is sent again. */
function leftOf(retention: Retention, passedMs: number): Retention | undefined {
  const leftMs = Math.ceil(retention.leftMs - passedMs);
  return leftMs > 0 ? { ...retention, leftMs } : undefined;
}

/**
 * Lengthens a lease at a majority. A node that has lost the lease is asked for its vote again, unless the lock itself
 * is lost.
 *
 * @param exactly whether to set the lease to this length even if it is longer now
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
      send: ({ store }, index) => store.renew(holder.atNodes[index]!.owner, leaseMs, exactly),
      refuted: (index) => (isAnswered ? isHeld && holder.reclaimVote(index) : lost.push(index)),
    });
    return isHeld;
  } finally {
    // Before the caller goes on: the caller may release the lock.
    isAnswered = true;
    if (isHeld) for (const index of lost) holder.reclaimVote(index);
  }
}

/**
 * Makes another owner id the holder at a majority. Two kinds of leftovers are released: the old owner's lock where the
 * transfer was not confirmed, because it would keep votes from the next holder; and the new owner's lock if the
 * transfer has failed.
 *
 * @param holder what this process knows of the old owner, if anything
 * @returns the fencing token, or `null` if a majority says that the old owner does not hold the lock
 */
export async function transferAtNodes(
  owner: LockOwner,
  transfer: Transfer,
  holder: Candidate | undefined,
  deps: QuorumDeps,
): Promise<number | null> {
  const { nodes } = deps;
  // Each node has a token of its own, and the lease has one of them.
  const fencingToken = transfer.fencingToken ?? (holder?.fencingToken || undefined);
  const withToken = { ...transfer, ...(fencingToken && { fencingToken }) };
  const tokens: number[] = [];
  const moved = new Set<number>();
  const missed = new Set<number>();
  let isMoved: boolean | undefined;
  const releaseLeftovers = (index: number): void => {
    const node = nodes[index]!;
    if (isMoved === false && moved.has(index)) node.releaseOrphan({ ...owner, id: transfer.to }, transfer.leaseMs);
    if (isMoved && missed.has(index) && !transfer.share) {
      node.releaseOrphan(ownerAt(index, owner, holder), holder?.leaseMs ?? transfer.leaseMs);
    }
  };
  isMoved = await askMajority(nodes, deps, {
    send: async ({ store }, index) => {
      const token = await store.transfer(ownerAt(index, owner, holder), withToken);
      if (token !== null) tokens.push(token);
      return token !== null;
    },
    confirmed: (index) => {
      moved.add(index);
      releaseLeftovers(index);
    },
    missed: (index) => {
      missed.add(index);
      releaseLeftovers(index);
    },
  });
  nodes.forEach((_, index) => releaseLeftovers(index));
  return isMoved ? mostFrequent(tokens) : null;
}

/** The token that most nodes know; the largest of those. */
function mostFrequent(tokens: readonly number[]): number {
  const countOf = (token: number): number => tokens.filter((other) => other === token).length;
  return tokens.toSorted((a, b) => countOf(b) - countOf(a) || b - a)[0]!;
}
