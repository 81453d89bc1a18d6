import type { StoredLabel } from '../core/api/label.js';
import { isSharedMode } from '../core/api/lock-mode.js';
import { MAX_SEEN_HOLDERS, type SeenHolder, type SeenHolders } from '../core/api/seen-holders.js';

/**
 * The holders that may have a majority, from what each node has answered. Each node has a token of its own for a lease,
 * so holders of one instance are matched in the order of their tokens.
 *
 * @param answers of the nodes that have answered without a vote
 * @param silent how many nodes have not answered
 */
export function mergeSeen(
  answers: readonly (SeenHolders | undefined)[],
  silent: number,
  majority: number,
): SeenHolders | undefined {
  // Each node names some of very many holders, and not all nodes the same.
  const isSample = answers.some((seen) => seen && seen.count > seen.list.length);
  const likely = sightingsIn(answers).filter((seen) => isSample || seen.length + silent >= majority);
  const list = thatFit(likely)
    .map((seen) => asOneHolder(seen, majority))
    .sort((a, b) => a.fencingToken - b.fencingToken)
    .slice(0, MAX_SEEN_HOLDERS);
  if (list.length === 0) return undefined;
  if (!isSample) return { list, count: list.length };
  const counts = answers.map((seen) => seen?.count ?? 0).sort((a, b) => b - a);
  return { list, count: Math.max(list.length, counts[Math.min(majority, counts.length) - 1]!) };
}

/** What the nodes say of each holder. */
function sightingsIn(answers: readonly (SeenHolders | undefined)[]): SeenHolder[][] {
  const byHolder = new Map<string, SeenHolder[]>();
  for (const seen of answers) {
    const places = new Map<string, number>();
    for (const holder of seen?.list ?? []) {
      const name = `${holder.mode} ${holder.isThisProcess} ${holder.instanceId}`;
      const place = (places.get(name) ?? 0) + 1;
      places.set(name, place);
      const key = `${place} ${name}`;
      byHolder.set(key, [...(byHolder.get(key) ?? []), holder]);
    }
  }
  return [...byHolder.values()];
}

/** Only readers can hold a resource together. Of other holders, at most the one that most nodes name has it. */
function thatFit(holders: SeenHolder[][]): SeenHolder[][] {
  const { mode } = holders[0]?.[0] ?? { mode: 'exclusive' };
  if (isSharedMode(mode) && holders.every(([holder]) => holder!.mode === mode)) return holders;
  const most = Math.max(...holders.map(({ length }) => length));
  const best = holders.filter(({ length }) => length === most);
  return best.length === 1 ? best : [];
}

/**
 * The lease began with the last vote of the first majority, and ends when so many votes have ended that none is left.
 */
function asOneHolder(seen: readonly SeenHolder[], majority: number): SeenHolder {
  const last = Math.min(majority, seen.length) - 1;
  const descending = (values: number[]): number => values.sort((a, b) => b - a)[last]!;
  const { label: _, isHandedOn: __, ...first } = seen[0]!;
  return {
    ...first,
    ...agreedLabel(seen),
    fencingToken: seen.map(({ fencingToken }) => fencingToken).sort((a, b) => a - b)[last]!,
    ttlMs: descending(seen.map(({ ttlMs }) => ttlMs)),
    heldMs: descending(seen.map(({ heldMs }) => heldMs)),
  };
}

/** The label that all of them show. A node that has missed a change shows an old one. */
export function agreedLabel(seen: readonly StoredLabel[]): StoredLabel {
  const { label, isHandedOn } = seen[0]!;
  if (!label && !isHandedOn) return {};
  const text = JSON.stringify(label);
  if (!seen.every((other) => other.isHandedOn === isHandedOn && JSON.stringify(other.label) === text)) return {};
  return label ? { label } : { isHandedOn: true };
}
