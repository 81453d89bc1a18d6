import { fencingTickOf } from '../core/store/fencing-token.js';
import type { Watcher, WatchReply } from '../core/store/watch-store.js';
import { orTooSlow, type ServerHealth, type StoreProbe } from '../core/store/store-probe.js';
import { Deferred } from '../core/util/promises.js';
import type { LockState } from '../core/store/lock-state.js';
import { LockStoreError } from '../core/store/store-error.js';
import { Broadcast } from './broadcast.js';
import type { QuorumNode, QuorumTiming } from './node.js';
import { majorityOf, quorumError } from './majority.js';
import { asOneHolder, matchHolders, mergeSeen, type Sighting } from './holders.js';

/** Returns what the nodes know of a resource: the holders that may have a majority, and the longest queue. */
export async function inspectNodes(
  nodes: readonly QuorumNode[],
  timing: QuorumTiming,
  resource: string,
): Promise<LockState> {
  const states = await askAll(nodes, timing, ({ store }) => store.inspect(resource));
  const majority = majorityOf(nodes.length);
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

/** Returns the resources that any node that answers knows of. */
export async function listOnNodes(
  nodes: readonly QuorumNode[],
  timing: QuorumTiming,
  prefix: string,
  limit: number,
  signal?: AbortSignal,
): Promise<string[]> {
  const lists = await askAll(nodes, timing, ({ store }) => store.list(prefix, limit, signal));
  return [...new Set(answered(lists).flat())].slice(0, limit);
}

/** Probes each node. What is wrong with the store of a node counts for that node alone. */
export function probeNodes(nodes: readonly QuorumNode[], { timeoutMs }: QuorumTiming): StoreProbe {
  const servers = nodes.map(async ({ store }): Promise<ServerHealth> => {
    const { servers: parts, problems } = store.probe();
    const answers = await Promise.all(parts);
    // A node is one server.
    const answer = { ...answers[0], problems: [...problems, ...answers.flatMap((each) => each.problems)] };
    return orTooSlow(answer, timeoutMs, 'nodeTimeoutMs');
  });
  return { topology: 'quorum', needed: majorityOf(nodes.length), servers, problems: [] };
}

/** A resource is free where a majority of the nodes says so: the others are too few for a holder. */
export async function watchNodes(
  nodes: readonly QuorumNode[],
  timing: QuorumTiming,
  watcher: Watcher,
  watchMs: number,
): Promise<WatchReply> {
  const replies = answered(await askAll(nodes, timing, ({ store }) => store.watch(watcher, watchMs)));
  // When so many nodes will be free, unless leases are renewed. A node that is free has nothing left of a lease.
  const left = replies.map(({ isFree, ttlMs }) => (isFree ? 0 : ttlMs)).sort((a, b) => a - b);
  const majority = majorityOf(nodes.length);
  const isFree = replies.filter((reply) => reply.isFree).length >= majority;
  if (isFree) return { isFree, ttlMs: 0 };
  const views = replies.map(({ seen }) => seen);
  const seen = mergeSeen(views, nodes.length - replies.length, majority);
  const ttlMs = Math.max(1, left[majority - 1]!);
  return seen ? { isFree, ttlMs, seen } : { isFree, ttlMs };
}

/**
 * Ends a lease at all nodes. It is enough that one node knows it by this token: each node has a token of its own for
 * it.
 *
 * @throws LockStoreError if only nodes that do not answer may know the token, or if no majority answers
 */
export async function forceReleaseOnNodes(
  nodes: readonly QuorumNode[],
  timing: QuorumTiming,
  resource: string,
  fencingToken: number,
): Promise<boolean> {
  const states = await askAll(nodes, timing, ({ store }) => store.inspect(resource));
  const all = holdersOf(states);
  const meant = fencingTickOf(fencingToken);
  const isMeant = ({ holder }: Sighting) => fencingTickOf(holder.fencingToken) === meant;
  const exact = all.find((seen) => seen.some(({ holder }) => holder.fencingToken === fencingToken));
  const seen = exact ?? all.find((each) => each.some(isMeant));
  if (seen === undefined) {
    const isCertain = answered(states).length === nodes.length || all.length === 0;
    if (isCertain) return false;
    throw new LockStoreError(
      'notExecuted',
      `no node that has answered knows the token ${fencingToken}, but not all have answered. ` +
        'Take the token that inspect() shows now',
    );
  }
  const released = await askAll(nodes, timing, ({ store }, index) => {
    const sighting = seen.find(({ node }) => node === index);
    return sighting ? store.forceRelease(resource, sighting.holder.fencingToken) : Promise.resolve(false);
  });
  return answered(released).some((wasHeld) => wasHeld);
}

/**
 * Asks all nodes, and waits for each of them. Resolves to one answer per node, `undefined` for a node that has not
 * answered.
 *
 * @throws LockStoreError if no majority answers
 */
export async function askAll<T>(
  nodes: readonly QuorumNode[],
  timing: QuorumTiming,
  send: (node: QuorumNode, index: number) => Promise<T>,
): Promise<readonly (T | undefined)[]> {
  const done = new Deferred<void>();
  const broadcast = new Broadcast<T>(nodes, timing, {
    answered: () => {},
    failed: () => {},
    counted: () => broadcast.pending === 0 && done.resolve(),
  });
  broadcast.send(send);
  await done.promise;
  const got = answered(broadcast.answers).length;
  if (got < majorityOf(nodes.length)) throw quorumError(broadcast, majorityOf(nodes.length), got, () => undefined);
  return broadcast.answers;
}

function answered<T>(answers: readonly (T | undefined)[]): T[] {
  return answers.filter((answer): answer is T & {} => answer !== undefined);
}

function holdersOf(states: readonly (LockState | undefined)[]): Sighting[][] {
  return matchHolders(states.map((state) => state?.holders));
}
