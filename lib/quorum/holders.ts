import { type Holder, type Holders, MAX_NAMED_HOLDERS, type StoredLabel } from '../kernel/api/holder.js';
import { isSharedMode } from '../kernel/api/lock-mode.js';
import { entryOf } from '../kernel/util/objects.js';

export interface Sighting {
  readonly node: number;
  readonly holder: Holder;
}

/**
 * Merges the nodes' views of each holder. They do not show owner ids, and each has its own token for a lease. So
 * holders of one instance and mode are matched in the order of their tokens.
 *
 * @param views the view of each node; `undefined` if it has not answered, or shows no holder
 */
export function matchHolders(views: readonly (readonly Holder[] | undefined)[]): Sighting[][] {
  const byHolder = new Map<string, Sighting[]>();
  for (const [node, holders = []] of views.entries()) {
    const places = new Map<string, number>();
    for (const holder of holders) {
      const name = `${holder.mode} ${holder.isThisProcess} ${holder.instanceId}`;
      const place = (places.get(name) ?? 0) + 1;
      places.set(name, place);
      const key = `${place} ${name}`;
      entryOf(byHolder, key, () => []).push({ node, holder });
    }
  }
  return [...byHolder.values()];
}

/**
 * The lease began with the last vote of the first majority, whose token it has. It ends when so many votes have ended
 * that none is left.
 */
export function asOneHolder(seen: readonly Sighting[], majority: number): Holder {
  const holders = seen.map(({ holder }) => holder);
  const last = Math.min(majority, holders.length) - 1;
  const { label: _, isHandedOn: __, ...deciding } = holders.toSorted((a, b) => b.ttlMs - a.ttlMs)[last]!;
  return {
    ...deciding,
    ...agreedLabel(holders),
    fencingToken: holders.map(({ fencingToken }) => fencingToken).sort((a, b) => a - b)[last]!,
    heldMs: holders.map(({ heldMs }) => heldMs).sort((a, b) => b - a)[last]!,
    depth: Math.max(...holders.map(({ depth }) => depth)),
  };
}

/**
 * The holders that may have a majority, from what each node has answered.
 *
 * @param answers of the nodes that have answered without a vote
 * @param silent how many nodes have not answered
 */
export function mergeSeen(
  answers: readonly (Holders | undefined)[],
  silent: number,
  majority: number,
): Holders | undefined {
  // Each node names some of very many holders, and not all nodes the same.
  const isSample = answers.some((seen) => seen && seen.holderCount > seen.holders.length);
  const all = matchHolders(answers.map((seen) => seen?.holders));
  const holders = thatFit(all.filter((seen) => isSample || seen.length + silent >= majority))
    .map((seen) => asOneHolder(seen, majority))
    .sort((a, b) => a.fencingToken - b.fencingToken)
    .slice(0, MAX_NAMED_HOLDERS);
  if (holders.length === 0) return undefined;
  if (!isSample) return { holders, holderCount: holders.length };
  const counts = answers.map((seen) => seen?.holderCount ?? 0).sort((a, b) => b - a);
  return { holders, holderCount: Math.max(holders.length, counts[Math.min(majority, counts.length) - 1]!) };
}

/** Only readers can hold a resource together. Of other holders, only the one that most nodes name can have it. */
function thatFit(all: Sighting[][]): Sighting[][] {
  const { mode } = all[0]?.[0]?.holder ?? { mode: 'exclusive' };
  if (isSharedMode(mode) && all.every(([seen]) => seen!.holder.mode === mode)) return all;
  const most = Math.max(...all.map(({ length }) => length));
  const best = all.filter(({ length }) => length === most);
  return best.length === 1 ? best : [];
}

/** The label that all of them show. A node that has missed a change shows an old one. */
function agreedLabel(seen: readonly StoredLabel[]): StoredLabel {
  const { label, isHandedOn } = seen[0]!;
  if (!label && !isHandedOn) return {};
  const text = JSON.stringify(label);
  if (!seen.every((other) => other.isHandedOn === isHandedOn && JSON.stringify(other.label) === text)) return {};
  return label ? { label } : { isHandedOn: true };
}
