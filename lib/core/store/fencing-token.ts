/** A token is its tick times this; it leaves room to number hand-overs inside one store lease. */
export const TOKENS_PER_FENCING_TICK = 32;

/** The tick of which a token was handed out. */
export function fencingTickOf(fencingToken: number): number {
  return Math.floor(fencingToken / TOKENS_PER_FENCING_TICK);
}
