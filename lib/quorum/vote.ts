/** What a node has granted. */
export interface Vote {
  readonly fencingToken: number;
  /** When the command was sent to which the grant owes its length. */
  readonly stamp: number;
}

/** From when on a lease counts: a majority of the votes is as young as that. */
export function stampOf(votes: readonly Vote[], majority: number): number {
  return votes.map(({ stamp }) => stamp).sort((a, b) => b - a)[majority - 1]!;
}

/** A token larger than all before it, as far as the nodes know; the one it had already where a majority was never lost. */
export function tokenOf(votes: readonly Vote[], majority: number, before: number): number {
  const tokens = votes.map(({ fencingToken }) => fencingToken);
  const isSame = tokens.filter((token) => token <= before).length >= majority;
  return isSame ? before : Math.max(...tokens);
}
