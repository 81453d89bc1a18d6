import { LEADER_PREFIX } from '../../kernel/api/resource.js';
import type { LockClient } from '../../kernel/lock-client.js';
import type { LockState } from '../../kernel/store/lock-state.js';
import { lifeOf } from '../../features/fleet/core/roll/life.js';
import type { FleetReport, InstanceLife } from '../../features/fleet/core/roll/lock-fleet.js';

const MAX_LEADERS = 10_000;
const LOOKS_AT_ONCE = 20;

/** A leadership, its leader if there is one, and its candidates. */
export interface LeadershipState {
  readonly name: string;
  readonly leader?: string;
  readonly life?: InstanceLife;
  readonly fencingToken?: number;
  readonly leadsForMs?: number;
  readonly ttlMs?: number;
  readonly candidates: number;
  /** In the last ten minutes, as far as the instances report it. */
  readonly elections: number;
}

/** @throws LockUnavailableError */
export async function leadershipsOf(client: LockClient, roll: FleetReport): Promise<LeadershipState[]> {
  const states = await leaderStates(client, roll);
  return states.map(({ resource, holders: [holder], waiters }) => ({
    name: resource.slice(LEADER_PREFIX.length),
    ...(holder && {
      leader: holder.instanceId,
      life: lifeOf(holder, roll),
      fencingToken: holder.fencingToken,
      leadsForMs: holder.heldMs,
      ttlMs: holder.ttlMs,
    }),
    candidates: waiters.length,
    elections: electionsOf(resource.slice(LEADER_PREFIX.length), roll),
  }));
}

function electionsOf(leadership: string, { instances }: FleetReport): number {
  const own = instances.flatMap(({ leaderships }) => leaderships.filter(({ name }) => name === leadership));
  return own.reduce((sum, { elections }) => sum + elections, 0);
}

/** Inspects what instances campaign for. Scans all keys only if some do not answer. */
async function leaderStates({ operators }: LockClient, roll: FleetReport): Promise<LockState[]> {
  const isWhole = roll.completeness === 'complete' && roll.instances.every(({ more }) => more.leaderships === 0);
  if (!isWhole) return operators.list({ prefix: LEADER_PREFIX, limit: MAX_LEADERS });
  const names = [...new Set(roll.instances.flatMap((each) => each.leaderships.map(({ name }) => name)))].sort();
  const states: LockState[] = [];
  for (let from = 0; from < names.length; from += LOOKS_AT_ONCE) {
    const some = names.slice(from, from + LOOKS_AT_ONCE);
    states.push(...(await Promise.all(some.map((name) => operators.inspect(LEADER_PREFIX + name)))));
  }
  return states;
}
