import { lifeOf } from '../../../../../lib/features/fleet/core/roll/life.js';
import type { InstanceLife } from '../../../../../lib/features/fleet/core/roll/lock-fleet.js';
import { fleetInstance, fleetReport } from '../../fleet-reports.js';

const alive = fleetReport({ instances: [fleetInstance('api-1')] });
const silent = fleetReport({ silent: ['api-1'] });
const gone = fleetReport({ instances: [fleetInstance('api-2')] });

/** A lease of 30 s. */
const lease = (heldMs: number, renewedMsAgo: number) => {
  return { instanceId: 'api-1', leaseMs: 30_000, ttlMs: 30_000 - renewedMsAgo, heldMs };
};

it.each<[string, InstanceLife, Parameters<typeof lifeOf>]>([
  ['has answered', 'alive', [lease(90_000, 25_000), alive]],
  ['is subscribed, and has not answered', 'silent', [lease(90_000, 25_000), silent]],
  ['is not subscribed, and has missed two renewals', 'dead', [lease(90_000, 25_000), gone]],
  ['is not subscribed, and has missed one renewal', 'unknown', [lease(90_000, 15_000), gone]],
  ['is not subscribed, and renews', 'unknown', [lease(90_000, 5_000), gone]],
  [
    'is not subscribed, and has never renewed its lease, which may be a fixed one',
    'unknown',
    [lease(25_000, 25_000), gone],
  ],
  ['may be subscribed, for all that Redis tells', 'unknown', [lease(90_000, 25_000), { ...gone, subscribed: null }]],
  ['may have given an answer that cannot be read', 'unknown', [lease(90_000, 25_000), { ...gone, unreadable: 1 }]],
])('a holder that %s is %s', (_, life, args) => expect(lifeOf(...args)).toBe(life));
