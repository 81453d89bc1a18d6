import type { FleetInstance, FleetReport } from '../../features/fleet/core/roll/lock-fleet.js';
import type { INSTANCE_STATES } from './words.js';

export interface InstanceRow extends Partial<Pick<FleetInstance, 'version' | 'loopDelayMs' | 'blockedMs' | 'hearing'>> {
  readonly instanceId: string;
  /** Nothing else is known of one that is `silent` or `unsubscribed`. */
  readonly state: keyof typeof INSTANCE_STATES;
  readonly startedAt?: number;
  readonly held?: number;
  readonly waiting?: number;
  /** What it leads. */
  readonly leads?: readonly string[];
  /** How many singleton jobs it has the code of. */
  readonly jobs?: number;
  /** How many leases were granted there in the last minute. */
  readonly acquired?: number;
}

/** The instances that have answered, then those that have not. */
export function instanceRows(roll: FleetReport): InstanceRow[] {
  return [
    ...roll.instances.map((each) => instanceRow(each, roll.askedAt)),
    ...roll.silent.map((instanceId) => ({ instanceId, state: 'silent' as const })),
    ...unsubscribedIn(roll).map((instanceId) => ({ instanceId, state: 'unsubscribed' as const })),
  ];
}

function instanceRow(instance: FleetInstance, askedAt: number): InstanceRow {
  const { instanceId, health, version, uptimeMs, loopDelayMs, blockedMs, hearing, more, lastMinute } = instance;
  return {
    instanceId,
    state: health,
    version,
    startedAt: askedAt - uptimeMs,
    loopDelayMs,
    blockedMs,
    hearing,
    held: instance.held.length + more.held,
    waiting: instance.waiting.length + more.waiting,
    leads: instance.leaderships.flatMap(({ name, isLeader }) => (isLeader ? [name] : [])),
    jobs: instance.jobs.length + more.jobs,
    acquired: lastMinute?.acquired,
  };
}

/** Holders without a subscription: dead ones, and those whose Redis user may not subscribe. */
function unsubscribedIn({ unlisted, silent }: FleetReport): string[] {
  const ids = unlisted.filter(({ life }) => life === 'unknown' || life === 'dead').map(({ instanceId }) => instanceId);
  return [...new Set(ids)].filter((instanceId) => !silent.includes(instanceId));
}
