import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosRedis } from '../servers/chaos-redis.js';
import type { Fault } from './fault.js';
import { WANTED } from './process-faults.js';

/** The excess of a quarantine over the longest lease: Redis counts its uptime in whole seconds, plus a margin. */
export const ROUNDING_MS = 1_200;

/**
 * Brings Redis back from a snapshot that is some moments old. Leases are lost, but no two are valid at once: Redis
 * grants nothing before `quarantineMs` have passed.
 *
 * @param haveOperators `true` if operators end the leases that reappear. No other call may get such a lock before the
 * holder's
 *   next renewal. Takes a quarantine that is longer than leases
 */
export function snapshotFault(redis: ChaosRedis, quarantineMs: number, haveOperators: boolean): Fault {
  return {
    kind: `Redis: kill -9, back from an old snapshot${haveOperators ? ', of which operators release all' : ''}`,
    strikes: 'redis',
    losesData: true,
    async inject(world) {
      const { leaseMs, random } = world;
      await redis.snapshot();
      // Else the leases that are in it have just ended, or nearly, and their holders have renewed them.
      await sleep(leaseMs * (haveOperators ? 0.5 * random.fraction() : 0.3 + 0.9 * random.fraction()));
      await redis.kill();
      await redis.restart({ keepData: true });
      if (haveOperators) await Promise.all(WANTED.map((resource) => world.forceRelease(resource)));
      await sleep(quarantineMs + ROUNDING_MS);
    },
  };
}
