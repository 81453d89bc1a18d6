import type { FleetReport } from '../../features/fleet/core/roll/lock-fleet.js';
import type { Instance } from './roll.js';

type Wait = Instance['waiting'][number] & { readonly instanceId: string; readonly heldBy?: string };

/** The calls that have waited for the longest time, and who holds what they wait for. */
export function longestWaits({ instances, unlisted }: FleetReport, most: number): Wait[] {
  const holders = new Map(
    instances.flatMap(({ instanceId, held }) => held.map(({ resource }) => [resource, instanceId] as const)),
  );
  for (const { resource, instanceId, hasAnswered } of unlisted) {
    if (!hasAnswered) holders.set(resource, `${instanceId} (does not answer)`);
  }
  return instances
    .flatMap(({ instanceId, waiting }) => waiting.map((wait) => ({ ...wait, instanceId })))
    .sort((a, b) => b.waitedMs - a.waitedMs)
    .slice(0, most)
    .map((wait) => {
      const heldBy = holders.get(wait.resource);
      return { ...wait, ...(heldBy !== undefined && { heldBy }) };
    });
}

/** Holders that do not answer, of what calls wait for. */
export function deadHolders({ unlisted }: FleetReport): FleetReport['unlisted'] {
  return unlisted.filter(({ hasAnswered }) => !hasAnswered);
}

/** How long calls of one group waited for another one. */
export type Blocked = Instance['blockers'][number];

/** Who waits for whom at this moment. `waitedMs` is the longest wait of them. */
export function blockedNow({ instances, unlisted }: FleetReport): Blocked[] {
  const holders = new Map<string, string>();
  for (const { resource, label } of unlisted) holders.set(resource, label?.group ?? 'a holder that does not answer');
  for (const { resource, group } of instances.flatMap(({ held }) => held)) holders.set(resource, group);
  const waits = instances.flatMap(({ waiting }) => waiting);
  const blocked = waits.map(({ resource, group, waitedMs }) => {
    return { waiter: group, holder: holders.get(resource) ?? 'not known', waitedMs, calls: 1 };
  });
  return merged(blocked, Math.max);
}

/** Who has waited for whom since the instances count, of the last ten minutes at most. */
export function blockedLately({ instances }: Pick<FleetReport, 'instances'>): Blocked[] {
  return merged(instances.flatMap(({ blockers }) => blockers));
}

function merged(all: readonly Blocked[], both = (a: number, b: number): number => a + b): Blocked[] {
  const found = new Map<string, Blocked>();
  for (const each of all) {
    const key = JSON.stringify([each.waiter, each.holder]);
    const before = found.get(key);
    found.set(
      key,
      before ? { ...each, calls: before.calls + each.calls, waitedMs: both(before.waitedMs, each.waitedMs) } : each,
    );
  }
  return [...found.values()].sort((a, b) => b.waitedMs - a.waitedMs);
}
