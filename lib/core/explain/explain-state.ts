import type { LockState } from '../store/lock-state.js';
import { LockExplanation } from './explanation.js';
import { likelyCause, type Wanted } from './likely-cause.js';
import type { OwnPart } from './own-part.js';
import { seenLease, silentWaiters } from './seen-lease.js';
import { describeCause, describeHolding, describeWaiting } from './sentences.js';

/** Explains a look at a resource, with what this process knows of its own part. */
export function explainState(state: LockState, own: OwnPart, wanted: Wanted = {}): LockExplanation {
  const leases = state.holders.map((holder) => seenLease(holder, own));
  const silent = silentWaiters(state.waiters, own);
  const cause = likelyCause(state, leases, own, wanted, silent);
  const sentences = [
    ...describeHolding(state, leases),
    ...describeWaiting(state, own, silent),
    ...describeCause(cause, state, leases, wanted),
  ];
  return new LockExplanation(state.resource, cause, Object.freeze(sentences), frozen(state));
}

/** The same, so that no reader changes what another one reads. */
function frozen(state: LockState): LockState {
  for (const each of [...state.holders, ...state.waiters]) Object.freeze(each);
  Object.freeze(state.holders);
  Object.freeze(state.waiters);
  if (state.permits) Object.freeze(state.permits);
  return Object.freeze(state);
}
