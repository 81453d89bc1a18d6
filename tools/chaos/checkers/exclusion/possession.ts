import { type Call, reenters } from '../../history/call.js';
import type { Span } from '../spans.js';

/**
 * When Redis may have a resource as this call's: longer than the call itself knows, because a lock that nobody releases stays
 * until its TTL is over, and the last renewal may have been sent in the last moment.
 */
export function possession(call: Call): Span[] {
  const { invoked, granted, refused, diedAt } = call;
  // Nobody knows when it was granted the first of several.
  const hasEarly = invoked.resources.length > 1;
  const span = (from: number, to: number): Span[] => (to > from ? [{ from, to }] : []);
  if (granted) return span(hasEarly || reenters(call) ? invoked.at : granted.at, heldAtMost(call));
  if (refused) {
    const isKnown = refused.type === 'fail' && refused.code !== 'LOCK_UNAVAILABLE' && refused.code !== 'LEASE_LOST';
    if (isKnown) return hasEarly ? span(invoked.at, refused.at) : [];
    return span(invoked.at, refused.at + invoked.leaseMs);
  }
  if (diedAt === undefined) return hasEarly ? span(invoked.at, Infinity) : [];
  return span(hasEarly ? invoked.at : diedAt, diedAt + invoked.leaseMs);
}

function heldAtMost(call: Call): number {
  const { invoked, lost, looks, diedAt = Infinity, releaseCalledAt = Infinity, releasedAt } = call;
  const seenOver = looks.find(({ held }) => !held)?.at ?? Infinity;
  const lostAt = Math.min(lost ? Math.min(lost.at, lost.loopRanAt) : Infinity, seenOver);
  const renewedAt = Math.min(lostAt, releaseCalledAt, diedAt);
  const isReleased = releasedAt !== undefined && lostAt === Infinity;
  return isReleased ? releasedAt : renewedAt + invoked.leaseMs;
}
