import { type Holder, renewedMsAgo } from '../../../../kernel/api/holder.js';
import type { FleetReport, InstanceLife } from './lock-fleet.js';

/** Clocks and answers are not exact. */
const SLACK_MS = 300;

type Answered = Pick<FleetReport, 'instances' | 'silent' | 'subscribed' | 'unreadable'>;

/**
 * Returns what is known of the process of a holder. A living process may lack a subscription, so it only counts as dead
 * if renewals are missing, too. A lease that was never renewed may be a fixed one, whose holder is never dead.
 */
export function lifeOf(
  holder: Pick<Holder, 'instanceId' | 'leaseMs' | 'ttlMs' | 'heldMs'>,
  fleet: Answered,
): InstanceLife {
  const life = processLife(holder.instanceId, fleet);
  if (life !== 'unsubscribed') return life;
  const { leaseMs, heldMs } = holder;
  const agoMs = renewedMsAgo(holder);
  const wasRenewed = heldMs > agoMs + SLACK_MS;
  return wasRenewed && agoMs > (2 / 3) * leaseMs + SLACK_MS ? 'dead' : 'unknown';
}

/** Returns what is known of a process without a lease. `unsubscribed`: it is dead, or may not subscribe. */
export function processLife(
  instanceId: string,
  { instances, silent, subscribed, unreadable }: Answered,
): 'alive' | 'silent' | 'unsubscribed' | 'unknown' {
  if (instances.some((each) => each.instanceId === instanceId)) return 'alive';
  if (silent.includes(instanceId) || subscribed?.includes(instanceId)) return 'silent';
  return subscribed === null || unreadable > 0 ? 'unknown' : 'unsubscribed';
}
