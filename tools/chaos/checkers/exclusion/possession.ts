import { type Call, reenters } from '../../history/call.js';
import type { Span } from '../spans.js';

/**
 * Returns the times at which Redis may keep a resource for this call: longer than the call itself knows, because an
 * unreleased lock stays until its TTL ends, and the last renewal may have been sent at the last moment.
 */
export function possession(call: Call): Span[] {
  const { invoked, granted, refused, diedAt } = call;
  // It is unknown when it was granted the first of several.
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
