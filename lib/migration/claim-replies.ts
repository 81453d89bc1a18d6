import type { ForeignReply } from '../core/api/foreign-lock.js';

/** What a script to acquire replies where this owner has the lock. Otherwise it replies with the TTL of the key. */
export const HELD = -3;

/** Reads the reply of a script to acquire. A key without an expiry has a TTL of -1. */
export function readAcquired(reply: unknown): ForeignReply {
  if (reply === HELD) return { status: 'held' };
  return { status: 'busy', ttlMs: typeof reply === 'number' && reply >= 0 ? reply : Infinity };
}
