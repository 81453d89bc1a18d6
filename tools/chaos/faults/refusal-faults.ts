import { setTimeout as sleep } from 'node:timers/promises';
import { FREE_AGAIN_MS } from '../checkers/refusals.js';
import type { ChaosRedis } from '../servers/chaos-redis.js';
import type { Fault } from './fault.js';

/** Much shorter than a lease, and longer than the first of the pauses after which a refused command is sent again. */
const REFUSED_MS = 1_500;

/** An operator revokes rights of the workers for a moment: leases continue, and releases in that time are refused. */
export function refusalFaults(redis: ChaosRedis): Fault[] {
  const fault = (what: string, refuse: () => Promise<void>): Fault => ({
    kind: `Redis: refuses ${what}`,
    strikes: 'redis',
    inject: refuse,
    // Keeps other faults out until then.
    restore: () => sleep(2 * FREE_AGAIN_MS),
  });
  return [
    fault('EVALSHA', () => redis.refuse('evalsha', REFUSED_MS)),
    fault('its user, and closes the connections', () => redis.refuseUser(REFUSED_MS)),
  ];
}
