import { type Holder, namedGroup } from '../../kernel/api/holder.js';
import type { FleetReport, InstanceLife } from '../../features/fleet/core/roll/lock-fleet.js';

/** What is known of a lease. `released`: it is kept by `minHoldMs`. */
export type LeaseLife = 'notRenewed' | 'leaked' | 'released' | InstanceLife;

/** A lease, or a resource without a holder that calls wait for. */
export interface SeenLock {
  readonly resource: string;
  readonly lease?: SeenLease;
  /** The mode of the lease, or of the calls that wait. */
  readonly mode: Holder['mode'];
  readonly waiters: number;
  readonly oldestWaitMs?: number;
}

interface SeenLease {
  readonly instanceId: string;
  readonly life: LeaseLife;
  readonly fencingToken: number;
  readonly heldMs: number;
  readonly leftMs: number;
  /** Reported by its instance. */
  readonly work?: { readonly group: string; readonly callSite?: string };
  /** Set if only Redis knows it. */
  readonly holder?: Holder;
}

/** Everything that is held or waited for, by resource. */
export function locksOf(roll: FleetReport): SeenLock[] {
  const waits = new Map<string, { waiters: number; oldestWaitMs: number; mode: Holder['mode'] }>();
  for (const { waiting } of roll.instances) {
    for (const { resource, waitedMs, mode } of waiting) {
      const { waiters = 0, oldestWaitMs = 0 } = waits.get(resource) ?? {};
      waits.set(resource, { waiters: waiters + 1, oldestWaitMs: Math.max(oldestWaitMs, waitedMs), mode });
    }
  }
  const waitsFor = (resource: string) => {
    const { waiters = 0, oldestWaitMs } = waits.get(resource) ?? {};
    return { waiters, ...(oldestWaitMs !== undefined && { oldestWaitMs }) };
  };
  const locks: SeenLock[] = [];
  for (const { instanceId, held } of roll.instances) {
    for (const { resource, mode, fencingToken, heldMs, leftMs, group, callSite, isRenewed, isLeaked } of held) {
      const life = isLeaked ? 'leaked' : isRenewed ? 'alive' : 'notRenewed';
      const work = { group, ...(callSite !== undefined && { callSite }) };
      const lease = { instanceId, life, fencingToken, heldMs, leftMs, work } as const;
      locks.push({ resource, mode, lease, ...waitsFor(resource) });
    }
  }
  for (const holder of roll.unlisted) {
    const { resource, mode, instanceId, fencingToken, heldMs, ttlMs: leftMs, isKept } = holder;
    const life = isKept ? 'released' : holder.life;
    locks.push({
      resource,
      mode,
      lease: { instanceId, life, fencingToken, heldMs, leftMs, holder },
      ...waitsFor(resource),
    });
  }
  const names = new Set(locks.map(({ resource }) => resource));
  for (const [resource, { mode }] of waits) {
    if (!names.has(resource)) locks.push({ resource, mode, ...waitsFor(resource) });
  }
  return locks.sort((a, b) => (a.resource < b.resource ? -1 : 1));
}

const WELL: readonly (LeaseLife | undefined)[] = ['alive', 'released', 'notRenewed'];

/** Returns a number by which the lock in the worst trouble is the first: waited for, then in a bad state, then old. */
export function troubleOf({ lease, waiters, oldestWaitMs = 0 }: SeenLock): number {
  const isBad = lease !== undefined && !WELL.includes(lease.life);
  const ageMs = waiters > 0 ? oldestWaitMs : (lease?.heldMs ?? 0);
  return -((waiters > 0 ? 2 : 0) + (isBad ? 1 : 0)) * 1e13 - Math.min(ageMs, 1e12);
}

/** The label of a holder in words. */
export function labelText({ label, isKept, isHandedOn }: Pick<Holder, 'label' | 'isKept' | 'isHandedOn'>): string {
  if (isKept) return 'released, kept by minHoldMs';
  if (isHandedOn) return 'handed on inside that process';
  if (!label) return '';
  const { group, traceparent: _, ...others } = label;
  const texts = Object.entries(others).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return [namedGroup(group) ?? [], ...texts].flat().join(', ');
}
