import type { Holder } from '../../../../kernel/api/holder.js';
import { entryOf } from '../../../../kernel/util/objects.js';
import type { FleetReport, FleetWait, InstanceLife } from './lock-fleet.js';

/** A holder, as its instance reports it. If only Redis knows it, group and call site are those of its label. */
export interface SeenHolder {
  readonly instanceId: string;
  /**
   * What is known of the lease, or of its process. A process that is alive reports it as `leaked`, if nothing in it
   * refers to the lease any more, and as `notRenewed`, if it does not renew it.
   */
  readonly life: 'notRenewed' | 'leaked' | InstanceLife;
  readonly mode: Holder['mode'];
  readonly fencingToken: number;
  readonly heldMs: number;
  readonly leftMs: number;
  readonly group?: string | undefined;
  readonly callSite?: string | undefined;
  /** Set if only Redis knows it. */
  readonly holder?: Holder;
}

/** Returns `true` for a lease that its process has, and can still release. */
export function isWell({ life }: SeenHolder): boolean {
  return life === 'alive' || life === 'notRenewed';
}

/** A call that waits, and its instance. */
type Wait = FleetWait & { readonly instanceId: string };

/** A resource, with all its holders and all calls that wait for it. */
export interface SeenLock {
  readonly resource: string;
  readonly holders: readonly SeenHolder[];
  readonly waits: readonly Wait[];
  /** 0 if no call waits. */
  readonly oldestWaitMs: number;
}

/** Everything that is held or waited for. */
export function locksIn({ instances, unlisted }: FleetReport): ReadonlyMap<string, SeenLock> {
  const locks = new Map<string, { resource: string; holders: SeenHolder[]; waits: Wait[]; oldestWaitMs: number }>();
  const lockOf = (resource: string) =>
    entryOf(locks, resource, () => ({ resource, holders: [], waits: [], oldestWaitMs: 0 }));
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
  for (const holder of unlisted) {
    const { instanceId, life, mode, fencingToken, heldMs, ttlMs: leftMs, label } = holder;
    const work = { group: label?.group, callSite: label?.site };
    lockOf(holder.resource).holders.push({ instanceId, life, mode, fencingToken, heldMs, leftMs, ...work, holder });
  }
  return locks;
}
