import { tickOf } from '../core/store/fencing-token.js';
import { Deferred } from '../core/util/deferred.js';
import { type LockHolder, type LockState, LockStoreError } from '../core/store/lock-store.js';
import { Broadcast } from './broadcast.js';
import type { QuorumNode, QuorumTiming } from './node.js';
import { majorityOf, quorumError } from './majority.js';

/** The same holder, as one node and another know it. */
interface Sighting {
  readonly index: number;
  readonly state: LockState;
  readonly holder: LockHolder;
}

/** What the nodes that answer know of a resource: the holders that may have a majority, and the longest queue. */
export async function inspectNodes(
  nodes: readonly QuorumNode[],
  timing: QuorumTiming,
  resource: string,
): Promise<LockState> {
  const states = await askAll(nodes, timing, ({ store }) => store.inspect(resource));
  const found = sightings(states).filter((seen) => mayBeMajority(seen, nodes, states));
  const known = found.map((seen) => asOneHolder(seen, nodes)).sort((a, b) => a.fencingToken - b.fencingToken);
  const waiters = found[0]?.map(({ state }) => state.waiters) ?? answered(states).map((state) => state.waiters);
  return {
    resource,
    mode: found[0]?.[0]!.state.mode ?? null,
    holders: known,
    ttlMs: Math.max(0, ...known.map(({ ttlMs }) => ttlMs)),
    waiters: waiters.reduce((longest, queue) => (queue.length > longest.length ? queue : longest), []),
  };
}

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

/**
 * Ends the lease that some node knows by this token, at all of them: each node has minted its own.
 *
 * @throws LockStoreError where the token may be known only to nodes that do not answer, or not enough of them answer
 */
export async function forceReleaseOnNodes(
  nodes: readonly QuorumNode[],
  timing: QuorumTiming,
  resource: string,
  fencingToken: number,
): Promise<boolean> {
  const states = await askAll(nodes, timing, ({ store }) => store.inspect(resource));
  const all = sightings(states);
  const meant = tickOf(fencingToken);
  const isMeant = ({ holder }: Sighting) => tickOf(holder.fencingToken) === meant;
  const exact = all.find((seen) => seen.some(({ holder }) => holder.fencingToken === fencingToken));
  const seen = exact ?? all.find((each) => each.some(isMeant));
  if (seen === undefined) {
    const isCertain = answered(states).length === nodes.length || all.length === 0;
    if (isCertain) return false;
    throw new LockStoreError(
      'notExecuted',
      `no node that answers knows the token ${fencingToken}; one that does not may. Take the token that inspect() shows now`,
    );
  }
  const released = await askAll(nodes, timing, ({ store }, index) => {
    const sighting = seen.find((each) => each.index === index);
    return sighting ? store.forceRelease(resource, sighting.holder.fencingToken) : Promise.resolve(false);
  });
  return answered(released).some((wasHeld) => wasHeld);
}

/** What each node answers; of those that do not, nothing. @throws LockStoreError when that are too many */
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

/** Holders have no name that may be shown. Those of one instance that hold alike are matched in the order of their tokens. */
function sightings(states: readonly (LockState | undefined)[]): Sighting[][] {
  const byHolder = new Map<string, Sighting[]>();
  states.forEach((state, index) => {
    const places = new Map<string, number>();
    for (const holder of state?.holders ?? []) {
      const place = (places.get(holder.instanceId) ?? 0) + 1;
      places.set(holder.instanceId, place);
      const key = `${state!.mode} ${place} ${holder.instanceId}`;
      const seen = byHolder.get(key) ?? [];
      byHolder.set(key, [...seen, { index, state: state!, holder }]);
    }
  });
  return [...byHolder.values()];
}

/** Whether it has a majority, if all those that do not answer have it. */
function mayBeMajority(
  seen: readonly Sighting[],
  nodes: readonly unknown[],
  states: readonly (LockState | undefined)[],
): boolean {
  return seen.length + nodes.length - answered(states).length >= majorityOf(nodes.length);
}

function asOneHolder(seen: readonly Sighting[], nodes: readonly unknown[]): LockHolder {
  const holders = seen.map(({ holder }) => holder);
  const last = Math.min(majorityOf(nodes.length), holders.length) - 1;
  // The lock is held for as long as the last node runs that a majority needs.
  const ttls = holders.map(({ ttlMs }) => ttlMs).sort((a, b) => b - a);
  // The lease has the largest token of the votes that decided. Nodes that have voted later have larger ones.
  const tokens = holders.map(({ fencingToken }) => fencingToken).sort((a, b) => a - b);
  return {
    instanceId: holders[0]!.instanceId,
    fencingToken: tokens[last]!,
    ttlMs: ttls[last]!,
    depth: Math.max(...holders.map(({ depth }) => depth)),
  };
}
