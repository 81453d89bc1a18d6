import type { Leadership } from '../../core/leader/leadership.js';
import type { RedisLockService } from '../redis-lock.service.js';

/** The latest leaderships of the decorated methods of a service, by name. */
const known = new WeakMap<RedisLockService, Map<string, Leadership>>();

/**
 * Returns the leadership that all methods decorated with its name share. Begins the campaign if there has been none.
 * After `resign()`, the campaign is over until the application calls `campaign()` again.
 *
 * @throws InvalidLockOptionsError if it would begin a campaign with an invalid `leaseMs`
 */
export function sharedLeadership(service: RedisLockService, name: string, leaseMs: number | undefined): Leadership {
  let leaderships = known.get(service);
  if (!leaderships) known.set(service, (leaderships = new Map()));
  const leadership =
    service.leadership?.(name) ?? leaderships.get(name) ?? service.campaign(name, campaignFor(leaseMs));
  leaderships.set(name, leadership);
  return leadership;
}

/** Returns the options with which a method begins or joins a campaign. */
export function campaignFor(leaseMs: number | undefined): { leaseMs?: number } {
  return leaseMs === undefined ? {} : { leaseMs };
}
