import type { Lease } from '../core/lease.js';
import type { Claim } from './lock-decoration.js';
import type { RedisLockService } from './redis-lock.service.js';

/** A controller's method. */
interface Handler {
  readonly type: object;
  readonly name: string;
}

/** Which handler the interceptor acquired a lease for, and as what. */
const handlers = new WeakMap<Lease, Handler & { readonly claim: Claim }>();

/** Notes that the interceptor holds this lease for a handler. */
export function markHandlerLease(lease: Lease, { type, name }: Handler, claim: Claim): void {
  handlers.set(lease, { type, name, claim });
}

/** Whether the interceptor holds all that is claimed for this very handler already: then it is not locked twice. */
export function isLockedByInterceptor(
  service: RedisLockService,
  claim: Claim,
  resources: readonly string[],
  { type, name }: Handler,
): boolean {
  const lease = service.current?.(resources[0]);
  const holder = lease && handlers.get(lease);
  // A lease that was lost meanwhile protects nothing any more.
  if (!holder || !lease.isHeld() || !covers(lease, holder.claim, claim)) return false;
  return holder.name === name && holder.type === type && resources.every((name) => lease.resources.includes(name));
}

/** Whether who holds the lease is as safe from others as who has what is claimed. */
function covers(lease: Lease, { permits: held }: Claim, { mode, permits: wanted }: Claim): boolean {
  if (held && wanted) return held.total === wanted.total && held.count >= wanted.count;
  // Not the mode of the claim: a writer may be a reader by now.
  return !held && !wanted && (lease.mode !== 'read' || mode === 'read');
}
