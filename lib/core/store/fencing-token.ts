/** The first token of a fencing tick is the tick times this. The others number the leases of one store lease. */
export const TOKENS_PER_FENCING_TICK = 32;

/** Whether the store minted the token itself, and not a process that passed its lease on in memory. */
export function isMintedByStore(fencingToken: number): boolean {
  return fencingToken % TOKENS_PER_FENCING_TICK === 0;
}

/** The fencing tick that a token belongs to. */
export function fencingTickOf(fencingToken: number): number {
  return Math.floor(fencingToken / TOKENS_PER_FENCING_TICK);
}
