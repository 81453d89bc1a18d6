import type { Hold } from '../holding/hold.js';
import type { Runtime } from '../store/runtime.js';
import type { PendingCall } from './pending-call.js';
import { holdersNow, ownHolder, type QueueFacts } from './why-waiting.js';

/** A holder that had the lock for this long is told to every call that has waited for it. */
const SLOW_MS = 20;

/** Tells what follows the calls for whom they wait, as far as it is known without asking. */
export function traceWaits({ traces }: Pick<Runtime, 'traces'>, facts: QueueFacts, calls: Iterable<PendingCall>): void {
  for (const { options } of calls) traces.waits(options, (now) => holdersNow(facts, now));
}

/**
 * A hold ends, for which the calls have waited. Leases are passed on in memory without a look at the calls behind the
 * next one, so a slow holder would be missed by them.
 */
export function traceSlowHolder(
  { traces, store, clock }: Pick<Runtime, 'traces' | 'store' | 'clock'>,
  hold: Hold,
  calls: Iterable<PendingCall>,
): void {
  const now = clock.now();
  const heldMs = now - hold.acquiredAt;
  if (heldMs < SLOW_MS) return;
  const { storeLease, fencingToken } = hold;
  const [holder] = ownHolder(storeLease, store.instanceId, now).list;
  for (const { options } of calls)
    traces.waits(options, () => ({ list: [{ ...holder!, fencingToken, heldMs }], count: 1 }), now);
}
