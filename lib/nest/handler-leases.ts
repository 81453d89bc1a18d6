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

/** Whether the interceptor holds all the resources for this very method already: then it is not locked twice. */
export function isLockedByInterceptor(
  service: RedisLockService,
  resources: readonly string[],
  instance: object,
  method: string,
): boolean {
  const lease = service.current?.(resources[0]);
  const handler = lease && handlers.get(lease);
  if (!lease || !handler) return false;
  const isSameMethod = handler.name === method && instance.constructor === handler.type;
  return isSameMethod && resources.every((resource) => lease.resources.includes(resource));
}
