import type { Lease } from '../core/lease.js';
import type { RedisLockService } from './redis-lock.service.js';

/** A controller's method. */
interface Handler {
  readonly type: object;
  readonly name: string;
}

/** Which handler the interceptor acquired a lease for. */
const handlers = new WeakMap<Lease, Handler>();

/** Notes that the interceptor holds this lease for a handler. */
export function markHandlerLease(lease: Lease, handler: Handler): void {
  handlers.set(lease, handler);
}

/** Whether the interceptor holds all the resources for this very handler already: then it is not locked twice. */
export function isLockedByInterceptor(
  service: RedisLockService,
  resources: readonly string[],
  { type, name }: Handler,
): boolean {
  const lease = service.current?.(resources[0]);
  const holder = lease && handlers.get(lease);
  // A lease that was lost meanwhile protects nothing any more.
  if (!holder || !lease.isHeld()) return false;
  return holder.name === name && holder.type === type && resources.every((name) => lease.resources.includes(name));
}
