import { MAX_GROUPS } from '../../../../kernel/events/observers.js';
import { OTHER_GROUP } from '../../../../kernel/api/holder.js';
import { formatDuration } from '../../../../kernel/util/durations.js';
import { count } from '../../../../kernel/util/plurals.js';
import { plainOrQuoted } from '../../../../kernel/util/quoted.js';
import { entryOf } from '../../../../kernel/util/objects.js';

/** The group of holders whose group is not known, for example because their leases have no label. */
export const UNKNOWN_GROUP = '_unknown';

/**
 * The maximum number of groups of holders from labels. Another process writes those, so they must not take the place of
 * ours.
 */
const MAX_FOREIGN_GROUPS = 100;
/** The maximum number of processes of unknown groups. */
const MAX_INSTANCES = 200;
/** Limits on call sites: per pair, and in all. */
const SITES_OF_A_PAIR = 4;
const MAX_SITES = 400;

/** The holder that a call waits for: a group, or a process if its group is unknown. */
export interface BlockingGroup {
  readonly group: string;
  /** Only with the group `_unknown`, if the process is known. */
  readonly instanceId?: string | undefined;
  /** `true` if another process has named the group. */
  readonly isForeign?: boolean;
}

/** A call site from which calls have waited, and the number of those calls in the sample. */
export interface SampledSite {
  readonly callSite: string;
  readonly calls: number;
}

/** One group that has waited for another one. */
export interface Blocker {
  /** The group of the calls that waited. */
  readonly waiter: string;
  /**
   * The group of the holders that they waited for: `_unknown` if that isn't known, `_other` if the group isn't counted
   * separately.
   */
  readonly holder: string;
  /** The process of the holders, if only that is known. */
  readonly instanceId?: string;
  /** The total time that these calls have waited for the holders, in milliseconds. */
  readonly waitedMs: number;
  /** The number of calls that have waited for the holders. A call that has waited for two groups counts for both. */
  readonly calls: number;
  /**
   * The call sites of `acquire` and `tryAcquire` from which these calls came, sampled from one call in 64 by default.
   */
  readonly callSites: readonly SampledSite[];
  /** For people: `41 calls of Orders.pay waited 3.2 s in total for NightlyReport.run`. */
  readonly text: string;
}

export interface BlockedPair {
  readonly waiter: string;
  readonly holder: BlockingGroup;
  waitedMs: number;
  calls: number;
  sites: Map<string, number> | undefined;
}

/** Which groups have waited for which, and for how long. Its size has a bound, whatever names come. */
export class Blockers {
  readonly #pairs = new Map<string, Map<string, BlockedPair>>();
  readonly #waiters = new Set<string>();
  readonly #holders = new Set<string>();
  #foreignHolders = 0;
  readonly #instances = new Set<string>();
  #sites = 0;

  /** Counts one call and what it has waited for, in milliseconds. @returns the pair that got most of it */
  add(
    waiter: string,
    waits: readonly (readonly [BlockingGroup, number])[],
    tell: (holderGroup: string, waitedMs: number) => void = () => {},
  ): BlockedPair {
    const from = admits(this.#waiters, waiter, MAX_GROUPS) ? waiter : OTHER_GROUP;
    // Two holders may share a group, mostly `_other`: the call still counts once for it.
    const counted = new Set<BlockedPair>();
    let longest: BlockedPair | undefined;
    let longestMs = -1;
    for (const [holder, waitedMs] of waits) {
      const pair = this.#pair(from, holder);
      pair.waitedMs += waitedMs;
      counted.add(pair);
      tell(pair.holder.group, waitedMs);
      if (waitedMs > longestMs) [longest, longestMs] = [pair, waitedMs];
    }
    for (const pair of counted) pair.calls++;
    return longest!;
  }

  /** One of the calls of the pair came from there. */
  addSite(pair: BlockedPair, callSite: string): void {
    const sites = (pair.sites ??= new Map());
    const calls = sites.get(callSite);
    if (calls === undefined && (sites.size >= SITES_OF_A_PAIR || this.#sites >= MAX_SITES)) return;
    if (calls === undefined) this.#sites++;
    sites.set(callSite, (calls ?? 0) + 1);
  }

  /** The pairs with the longest waits first. */
  top(most: number): readonly Blocker[] {
    const all = [...this.#pairs.values()].flatMap((holders) => [...holders.values()]);
    all.sort((a, b) => b.waitedMs - a.waitedMs);
    return Object.freeze(all.slice(0, most).map(read));
  }

  #pair(waiter: string, holder: BlockingGroup): BlockedPair {
    const group = this.#holderGroup(holder);
    const instanceId = group === UNKNOWN_GROUP ? this.#instance(holder.instanceId) : undefined;
    const holders = entryOf(this.#pairs, waiter, () => new Map());
    const key = instanceId === undefined ? `group ${group}` : `instance ${instanceId}`;
    const none = { waitedMs: 0, calls: 0, sites: undefined };
    return entryOf<string, BlockedPair>(holders, key, () => ({ waiter, holder: { group, instanceId }, ...none }));
  }

  #holderGroup({ group, isForeign }: BlockingGroup): string {
    if (group === UNKNOWN_GROUP || this.#holders.has(group)) return group;
    const isLeftOut = isForeign && this.#foreignHolders >= MAX_FOREIGN_GROUPS;
    if (isLeftOut || !admits(this.#holders, group, MAX_GROUPS)) return OTHER_GROUP;
    if (isForeign) this.#foreignHolders++;
    return group;
  }

  #instance(instanceId: string | undefined): string | undefined {
    return instanceId !== undefined && admits(this.#instances, instanceId, MAX_INSTANCES) ? instanceId : undefined;
  }
}

/** Returns true if a name has a counter of its own. A new one gets one while there is room. */
function admits(known: Set<string>, name: string, most: number): boolean {
  if (!known.has(name) && known.size < most) known.add(name);
  return known.has(name);
}

function read({ waiter, holder, waitedMs, calls, sites }: BlockedPair): Blocker {
  const { group, instanceId } = holder;
  const blockedBy =
    group === UNKNOWN_GROUP
      ? unknownHolder(instanceId)
      : group === OTHER_GROUP
        ? 'other holders'
        : plainOrQuoted(group);
  const blocked =
    waiter === OTHER_GROUP ? count(calls, 'other call') : `${count(calls, 'call')} of ${plainOrQuoted(waiter)}`;
  const callSites = [...(sites ?? [])].map(([callSite, times]) => Object.freeze({ callSite, calls: times }));
  callSites.sort((a, b) => b.calls - a.calls);
  return Object.freeze({
    waiter,
    holder: group,
    ...(instanceId !== undefined && { instanceId }),
    waitedMs: Math.round(waitedMs),
    calls,
    callSites: Object.freeze(callSites),
    text: `${blocked} waited ${formatDuration(waitedMs)} in total for ${blockedBy}`,
  });
}

function unknownHolder(instanceId: string | undefined): string {
  return instanceId === undefined ? 'an unknown holder' : `an unknown holder on ${plainOrQuoted(instanceId)}`;
}
