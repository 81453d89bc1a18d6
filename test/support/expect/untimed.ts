import assert from 'node:assert/strict';
import type { LockState } from '../../../lib/core/store/lock-store.js';

/** The state without how long holders have held and how long places last, which hangs on the clock. Both are checked to be sane. */
export function untimed(state: LockState): LockState {
  const holders = state.holders.map(({ heldMs, ...holder }) => {
    isDuration(heldMs);
    return holder;
  });
  const waiters = state.waiters.map(({ placeMs, ...waiter }) => {
    isDuration(placeMs);
    return waiter;
  });
  return { ...state, holders, waiters };
}

function isDuration(ms: number | undefined): void {
  if (ms !== undefined) assert.ok(Number.isInteger(ms) && ms >= 0 && ms < 24 * 60 * 60 * 1_000, `${ms} ms`);
}
