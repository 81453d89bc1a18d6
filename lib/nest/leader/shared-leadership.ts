import type { Leadership } from '../../core/leader/leadership.js';
import type { RedisLockService } from '../redis-lock.service.js';

/** What the decorated methods of a service campaigned for last, by name. */
const known = new WeakMap<RedisLockService, Map<string, Leadership>>();

/**
 * The leadership that all methods decorated with its name share. Begins the campaign where there was none; one that was ended by
 * `resign()` is over until somebody calls `campaign()` again.
 *
 * @throws InvalidLockOptionsError when it would begin with a `leaseMs` that cannot be right
 */
export function sharedLeadership(service: RedisLockService, name: string, leaseMs: number | undefined): Leadership {
  let leaderships = known.get(service);
  if (!leaderships) known.set(service, (leaderships = new Map()));
  const leadership =
    service.leadership?.(name) ?? leaderships.get(name) ?? service.campaign(name, campaignFor(leaseMs));
  leaderships.set(name, leadership);
  return leadership;
}

/** What a method's campaign is begun or joined with. */
export function campaignFor(leaseMs: number | undefined): { leaseMs?: number } {
  return leaseMs === undefined ? {} : { leaseMs };
}
