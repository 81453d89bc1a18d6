import type { ForeignReply } from '../core/api/foreign-lock.js';

/** What a script to acquire replies where this owner has the lock. Otherwise it replies with the TTL of the key. */
export const HELD = -3;

/**
 * Reads the reply of a script to acquire. A key without an expiry has a TTL of -1. The TTL is in a list where another run
 * of the same job has it.
 */
export function readAcquired(reply: unknown): ForeignReply {
  if (reply === HELD) return { status: 'held' };
  const isOurs = Array.isArray(reply);
  const ttl: unknown = isOurs ? reply[0] : reply;
  return { status: 'busy', ttlMs: typeof ttl === 'number' && ttl >= 0 ? ttl : Infinity, ...(isOurs && { isOurs }) };
}
