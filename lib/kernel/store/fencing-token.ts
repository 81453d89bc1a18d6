/** The first token of a fencing tick is the tick times this. The others number the leases of one store lease. */
export const TOKENS_PER_FENCING_TICK = 64;

export function fencingTickOf(fencingToken: number): number {
  return Math.floor(fencingToken / TOKENS_PER_FENCING_TICK);
}

/** 2020-01-01: fencing ticks count from here. */
const TICKS_BEGIN_MS = Date.UTC(2020, 0, 1);
/** A tick is 20 µs, so that it stays behind the clock up to 50,000 grants a second. */
const TICKS_PER_MS = 50;

/** Returns the time at which the tick of this token was minted, in epoch milliseconds, by the clock of the store. */
export function mintedAt(fencingToken: number): number {
  return fencingTickOf(fencingToken) / TICKS_PER_MS + TICKS_BEGIN_MS;
}
