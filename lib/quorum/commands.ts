import { fencingTickOf } from '../kernel/store/fencing-token.js';
import type { Watcher, WatchReply } from '../kernel/store/watch-store.js';
import { closedProbe, orTooSlow, type ServerHealth, type StoreProbe } from '../kernel/store/store-probe.js';
import { Deferred } from '../kernel/util/promises.js';
import type { LockState } from '../kernel/store/lock-state.js';
import { LockStoreError } from '../kernel/store/store-error.js';
import { askMajority, Broadcast, enoughToDeny, majorityTrouble, quorumError } from './majority.js';
import type { QuorumDeps, QuorumNode, QuorumNodes } from './node.js';
import { asOneHolder, matchHolders, mergeSeen, type Sighting } from './holders.js';
import { LOCK_DEFAULTS } from '../kernel/api/lock-options.js';
import type { LockOwner, Retention } from '../kernel/store/lock-store.js';
import type { Candidate } from './candidate.js';

/** The owner by which a node knows the lock. A candidate has another one at each node that it has asked again. */
export function ownerAt(index: number, owner: LockOwner, candidate: Candidate | undefined): LockOwner {
  return candidate?.atNodes[index]?.owner ?? owner;
}

/**
 * Releases what an owner has at all nodes. Releases at nodes that do not answer in time are repeated in the background.
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
  const released = askMajority(deps, {
    send: (node, index) => {
      const present = ownerAt(index, owner, candidate);
      if (!retention) return node.store.release(present, lazily);
      node.orphanReleases.retain(present, { retention: () => leftOf(retention, clock.now() - sentAt) });
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

function leftOf(retention: Retention, passedMs: number): Retention | undefined {
  const leftMs = Math.ceil(retention.leftMs - passedMs);
  return leftMs > 0 ? { ...retention, leftMs } : undefined;
}

/**
 * Lengthens a lease at a majority. A node that has lost the lease is asked for its vote again, unless the lock itself
 * is lost.
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
    isHeld = await askMajority(deps, {
      send: ({ store }, index) => store.renew(holder.atNodes[index]!.owner, leaseMs, exactly),
      refuted: (index) => (isAnswered ? isHeld && holder.reclaimVote(index) : lost.push(index)),
    });
    return isHeld;
  } finally {
    // Before the caller continues: it may release the lock.
    isAnswered = true;
    if (isHeld) for (const index of lost) holder.reclaimVote(index);
  }
}

/** Questions to all nodes, whatever this process has there. */
export abstract class AskedNodes {
  abstract readonly quorum: QuorumNodes;
  protected isClosed = false;

  /** The holders that may have a majority, and the longest queue. */
  async inspect(resource: string): Promise<LockState> {
    const states = await askAll(this.quorum, ({ store }) => store.inspect(resource));
    const { nodes, majority } = this.quorum;
    const silent = nodes.length - answered(states).length;
    const found = holdersOf(states).filter((seen) => seen.length + silent >= majority);
    const holders = found.map((seen) => asOneHolder(seen, majority)).sort((a, b) => a.fencingToken - b.fencingToken);
    const queues = found[0]?.map(({ node }) => states[node]!) ?? answered(states);
    return {
      resource,
      mode: holders[0]?.mode ?? null,
      holders,
      ttlMs: Math.max(0, ...holders.map(({ ttlMs }) => ttlMs)),
      waiters: queues
        .map(({ waiters }) => waiters)
        .reduce((longest, queue) => (queue.length > longest.length ? queue : longest), []),
    };
  }

  /** The resources that any node that answers knows of. */
  async list(prefix: string, limit: number, signal?: AbortSignal): Promise<string[]> {
    const lists = await askAll(this.quorum, ({ store }) => store.list(prefix, limit, signal));
    return [...new Set(answered(lists).flat())].slice(0, limit);
  }

  /** A problem with the store of a node counts for that node alone. */
  probe(): StoreProbe {
    if (this.isClosed) return closedProbe('quorum');
    const { nodes, majority, timeoutMs } = this.quorum;
    const servers = nodes.map(async ({ store }): Promise<ServerHealth> => {
      const { servers: parts, problems } = store.probe();
      const answers = await Promise.all(parts);
      // A node is one server.
      const answer = { ...answers[0], problems: [...problems, ...answers.flatMap((each) => each.problems)] };
      return orTooSlow(answer, timeoutMs, 'nodeTimeoutMs');
    });
    return { topology: 'quorum', needed: majority, servers, problems: [] };
  }

  /** A resource is free if a majority of the nodes reports that: the others are too few for a holder. */
  async watch(watcher: Watcher, watchMs: number): Promise<WatchReply> {
    const replies = answered(await askAll(this.quorum, ({ store }) => store.watch(watcher, watchMs)));
    // When so many nodes will be free, unless leases are renewed. A node that is free has nothing left of a lease.
    const left = replies.map(({ isFree, ttlMs }) => (isFree ? 0 : ttlMs)).sort((a, b) => a - b);
    const { nodes, majority } = this.quorum;
    const isFree = replies.filter((reply) => reply.isFree).length >= majority;
    if (isFree) return { isFree, ttlMs: 0 };
    const views = replies.map(({ seen }) => seen);
    const seen = mergeSeen(views, nodes.length - replies.length, majority);
    const ttlMs = Math.max(1, left[majority - 1]!);
    return seen ? { isFree, ttlMs, seen } : { isFree, ttlMs };
  }

  /**
   * It is enough that one node knows the lease by this token: each node has a token of its own for it.
   *
   * @throws LockStoreError if only nodes that do not answer may know the token, or if no majority answers
   */
  async forceRelease(resource: string, fencingToken: number): Promise<boolean> {
    const { quorum } = this;
    const states = await askAll(quorum, ({ store }) => store.inspect(resource));
    const all = holdersOf(states);
    const meant = fencingTickOf(fencingToken);
    const isMeant = ({ holder }: Sighting) => fencingTickOf(holder.fencingToken) === meant;
    const seen = all.find((each) => each.some(isMeant));
    if (seen === undefined) {
      const isCertain = answered(states).length === quorum.nodes.length || all.length === 0;
      if (isCertain) return false;
      throw new LockStoreError(
        'notExecuted',
        `no node that has answered knows the token ${fencingToken}, but not all have answered. ` +
          'Take the token that inspect() shows now',
      );
    }
    const released = await askAll(quorum, ({ store }, index) => {
      const sighting = seen.find(({ node }) => node === index);
      return sighting ? store.forceRelease(resource, sighting.holder.fencingToken) : Promise.resolve(false);
    });
    return answered(released).some((wasHeld) => wasHeld);
  }

  fenceOf(resource: string): string {
    return this.quorum.nodes[0]!.store.fenceOf(resource);
  }

  trouble(resource: string): LockStoreError | undefined {
    return majorityTrouble(this.quorum, resource);
  }
}

/**
 * Asks all nodes, and waits for each of them. Resolves to one answer per node, `undefined` for a node that has not
 * answered.
 *
 * @throws LockStoreError if no majority answers
 */
export async function askAll<T>(
  quorum: QuorumNodes,
  send: (node: QuorumNode, index: number) => Promise<T>,
): Promise<readonly (T | undefined)[]> {
  const done = new Deferred<void>();
  const broadcast = new Broadcast<T>(quorum, {
    counted: () => broadcast.pending === 0 && done.resolve(),
  });
  broadcast.send(send);
  await done.promise;
  const got = answered(broadcast.answers).length;
  if (got < quorum.majority) throw quorumError(broadcast, got, () => undefined);
  return broadcast.answers;
}

function answered<T>(answers: readonly (T | undefined)[]): T[] {
  return answers.filter((answer): answer is T & {} => answer !== undefined);
}

function holdersOf(states: readonly (LockState | undefined)[]): Sighting[][] {
  return matchHolders(states.map((state) => state?.holders));
}
