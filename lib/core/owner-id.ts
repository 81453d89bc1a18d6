import type { Random } from './random.js';

/**
 * A new owner id: the instance, so that an operator sees whose lock it is, and a secret part. Whoever knows the whole of
 * it can renew and release what it owns.
 */
export function createOwnerId(instanceId: string, random: Random): string {
  return `${instanceId}/${random.id()}`;
}

/** The public part of an owner id. */
export function instanceOf(ownerId: string): string {
  return ownerId.slice(0, ownerId.lastIndexOf('/'));
}
