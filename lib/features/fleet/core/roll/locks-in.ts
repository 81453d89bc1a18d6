import type { Holder } from '../../../../kernel/api/holder.js';
import { defined, entryOf } from '../../../../kernel/util/objects.js';
import type { FleetLease, FleetReport, FleetWait, InstanceLife } from './lock-fleet.js';

/** A holder, as its instance reports it. If only Redis knows it, group and call site are those of its label. */
export interface FleetHolder
  extends
    Pick<FleetLease, 'mode' | 'fencingToken' | 'heldMs' | 'leftMs' | 'callSite'>,
    Partial<Pick<FleetLease, 'group'>> {
  readonly instanceId: string;
  /**
   * What is known of the lease, or of its process. A process that is alive reports it as `leaked`, if nothing in it
   * refers to the lease any more, and as `notRenewed`, if it does not renew it.
   */
  readonly life: 'notRenewed' | 'leaked' | InstanceLife;
  /** Set if only Redis knows it. */
  readonly holder?: Holder;
}

/** Returns `true` for a lease that its process has, and can still release. */
export function isWell({ life }: { readonly life: string }): boolean {
  return life === 'alive' || life === 'notRenewed';
}

/** A resource, with all its holders and all calls that wait for it. */
export interface FleetLock {
  readonly resource: string;
  readonly holders: readonly FleetHolder[];
  readonly waits: readonly (FleetWait & { readonly instanceId: string })[];
  /** 0 if no call waits. */
  readonly oldestWaitMs: number;
}

/** Everything that is held or waited for. */
export function locksIn({ instances, unlisted }: FleetReport): ReadonlyMap<string, FleetLock> {
  const locks = new Map<string, ReturnType<typeof noLock>>();
  const lockOf = (resource: string) => entryOf(locks, resource, () => noLock(resource));
  for (const { instanceId, held, waiting } of instances) {
    for (const { resource, isLeaked, isRenewed, ...lease } of held) {
      const life = isLeaked ? 'leaked' : isRenewed ? 'alive' : 'notRenewed';
      lockOf(resource).holders.push({ ...lease, instanceId, life });
    }
    for (const wait of waiting) {
      const lock = lockOf(wait.resource);
      lock.waits.push({ ...wait, instanceId });
      lock.oldestWaitMs = Math.max(lock.oldestWaitMs, wait.waitedMs);
    }
  }
  for (const holder of unlisted) lockOf(holder.resource).holders.push(holderInRedis(holder, holder.life));
  return locks;
}

/** A holder of which only Redis knows. */
export function holderInRedis(holder: Holder, life: InstanceLife): FleetHolder {
  const { instanceId, mode, fencingToken, heldMs, ttlMs: leftMs, label } = holder;
  const work = defined({ group: label?.group, callSite: label?.site });
  return { instanceId, life, mode, fencingToken, heldMs, leftMs, ...work, holder };
}

function noLock(resource: string) {
  return { resource, holders: [] as FleetHolder[], waits: [] as FleetLock['waits'][number][], oldestWaitMs: 0 };
}
