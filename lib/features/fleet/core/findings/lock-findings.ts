import { namedGroup } from '../../../../kernel/api/holder.js';
import { longDuration } from '../../../../kernel/util/durations.js';
import { entryOf } from '../../../../kernel/util/objects.js';
import { count } from '../../../../kernel/util/plurals.js';
import { commandLine, plainOrQuoted, quote } from '../../../../kernel/util/quoted.js';
import type { FleetReport, InstanceLife } from '../roll/lock-fleet.js';
import type { Finding } from './finding.js';
import type { DeadlockedCall } from '../../../../kernel/api/busy-errors.js';

/** A call that has waited for this long is worth a look, and so are many that have waited for a second. */
const LONG_MS = 5_000;
const MANY = 10;
const MANY_MS = 1_000;
/** Waits of this length, or this many calls, mean that work is blocked. */
const CRITICAL_MS = 60_000;
const MAX_WORKS = 5;

type Wait = FleetReport['instances'][number]['waiting'][number];

/** Who holds a resource, by its instance or by Redis alone. */
interface SeenHolder {
  readonly life: InstanceLife;
  readonly instanceId: string;
  readonly work?: string | undefined;
  readonly callSite?: string | undefined;
  readonly fencingToken: number;
  readonly heldMs: number;
  readonly leftMs: number;
  readonly isRenewed: boolean;
  readonly isLeaked: boolean;
}

/** One finding for each resource that is in trouble, and one for each deadlock. */
export function lockFindings(fleet: FleetReport): Finding[] {
  const { askedAt, deadlocks } = fleet;
  const waits = new Map<string, Wait[]>();
  for (const wait of fleet.instances.flatMap(({ waiting }) => waiting)) {
    entryOf(waits, wait.resource, () => []).push(wait);
  }
  const holders = holdersIn(fleet);
  const deadlocked = new Set(deadlocks.flat().map(({ holds }) => holds));
  const found: Finding[] = deadlocks.map((cycle) => deadlockFinding(cycle, waits, holders, askedAt));
  for (const resource of new Set([...waits.keys(), ...holders.keys()])) {
    if (deadlocked.has(resource)) continue;
    const finding = resourceFinding(resource, waits.get(resource) ?? [], holders.get(resource) ?? [], askedAt);
    if (finding) found.push(finding);
  }
  return [...found, ...timeoutFindings(fleet, new Set(found.map(({ resource }) => resource)))];
}

function holdersIn({ instances, unlisted }: FleetReport): ReadonlyMap<string, SeenHolder[]> {
  const holders = new Map<string, SeenHolder[]>();
  for (const { instanceId, held } of instances) {
    for (const { group, ...lease } of held) {
      entryOf(holders, lease.resource, () => []).push({ ...lease, life: 'alive', instanceId, work: namedGroup(group) });
    }
  }
  for (const { resource, label, ttlMs: leftMs, ...holder } of unlisted) {
    const work = namedGroup(label?.group);
    const site = label?.site;
    entryOf(holders, resource, () => []).push({
      ...holder,
      work,
      callSite: site,
      leftMs,
      isRenewed: true,
      isLeaked: false,
    });
  }
  return holders;
}

/** The worst holder comes first: the others share the resource with it. */
const WORST: readonly InstanceLife[] = ['dead', 'silent', 'unknown', 'alive'];

function resourceFinding(
  resource: string,
  waits: readonly Wait[],
  holders: readonly SeenHolder[],
  askedAt: number,
): Finding | undefined {
  const rank = ({ life, isLeaked }: SeenHolder): number => (isLeaked ? 2.5 : WORST.indexOf(life));
  const [holder] = [...holders].sort((a, b) => rank(a) - rank(b) || b.heldMs - a.heldMs);
  const oldestMs = Math.max(0, ...waits.map(({ waitedMs }) => waitedMs));
  const isLong = oldestMs >= LONG_MS || (waits.length >= MANY && oldestMs >= MANY_MS);
  const isHarmless = holder === undefined || (holder.life === 'alive' && !holder.isLeaked);
  if (isHarmless && !isLong) return undefined;
  const waiting = waits.length === 0 ? '' : ` ${waitText(waits)}`;
  const shown = {
    resource,
    ...(holder && { culprit: culpritOf(holder) }),
    since: askedAt - (waits.length > 0 ? oldestMs : holder!.heldMs),
    ...(waits.length > 0 && { blocked: { calls: waits.length, works: worksOf(waits) } }),
  };
  const name = quote(resource);
  const inspect = { command: commandLine('why', resource) };
  if (!holder) {
    return {
      ...shown,
      severity: 'warning',
      kind: 'longWait',
      sentence: `${name}:${waiting} No holder was found.`,
      action: { text: 'Look at it again: a waiter takes a free lock when it next keeps its place.', ...inspect },
    };
  }
  const { life, instanceId, fencingToken, leftMs, heldMs, isLeaked, isRenewed, work } = holder;
  const who = plainOrQuoted(instanceId);
  const by = work === undefined ? who : `${work} on ${who}`;
  const left = longDuration(leftMs);
  const severity = waits.length > 0 ? 'critical' : 'warning';
  const release = { command: commandLine('release', resource, `--token ${fencingToken}`) };
  if (life === 'dead') {
    return {
      ...shown,
      severity,
      kind: 'holderDead',
      sentence: `${name} is held by ${by}, which is dead.${waiting} It is free in ${left}.`,
      action: { text: 'No work runs under it: wait until it expires, or end the lease.', ...release },
    };
  }
  if (life === 'silent') {
    return {
      ...shown,
      severity,
      kind: 'holderSilent',
      sentence: `${name} is held by ${by}, which does not answer: it is frozen, or its event loop is blocked.${waiting}`,
      action: {
        text: `Stop the process of ${who}: if it wakes up, its work continues. Then another one gets the lock in ${left}.`,
        command: commandLine('who', instanceId),
      },
    };
  }
  if (life === 'unknown') {
    return {
      ...shown,
      severity: 'warning',
      kind: 'holderUnknown',
      sentence: `${name} is held by ${by}, which has no subscription: nobody knows if it is alive.${waiting}`,
      action: { text: 'Check if it is renewed. If it is, its process is alive.', ...inspect },
    };
  }
  if (isLeaked) {
    const at = holder.callSite === undefined ? '' : ` at ${holder.callSite}`;
    return {
      ...shown,
      severity,
      kind: 'leaked',
      sentence: `${name} is leaked by ${who}: no work runs under it. It was acquired${at}, and never released.${waiting}`,
      action: { text: 'End the lease. Then fix that code: using() and await using always release.', ...release },
    };
  }
  const isCritical = oldestMs >= CRITICAL_MS || waits.length >= MANY;
  const state = isRenewed ? '' : ` Its lease is not renewed: it is free in ${left}.`;
  return {
    ...shown,
    severity: isCritical ? 'critical' : 'warning',
    kind: 'longWait',
    sentence: `${name}:${waiting} It is held by ${by} for ${longDuration(heldMs)}, which is alive.${state}`,
    action: {
      text: 'Look at what it does. It keeps working even if you end the lease.',
      command: commandLine('who', instanceId),
    },
  };
}

function deadlockFinding(
  cycle: readonly DeadlockedCall[],
  waits: ReadonlyMap<string, readonly Wait[]>,
  holders: ReadonlyMap<string, readonly SeenHolder[]>,
  askedAt: number,
): Finding {
  const resources = cycle.map(({ holds }) => holds);
  const waiting = [...new Set(resources)].flatMap((resource) => waits.get(resource) ?? []);
  const [first] = cycle as readonly [DeadlockedCall];
  const { instanceId, holds, callSite } = first;
  const token = holders.get(holds)?.find((each) => each.instanceId === instanceId)?.fencingToken;
  const work = workOf(first, holders);
  return {
    severity: 'critical',
    kind: 'deadlock',
    sentence: `Deadlock: ${sidesOf(cycle, holders).join(' ')}`,
    resource: holds,
    culprit: { instanceId, ...(work !== undefined && { work }), ...(callSite !== undefined && { callSite }) },
    since: askedAt - Math.max(0, ...waiting.map(({ waitedMs }) => waitedMs)),
    blocked: { calls: waiting.length, works: worksOf(waiting) },
    action: {
      text: 'End one of the leases, so that the others continue. Then take all of them in one call, or in one order.',
      command: token === undefined ? commandLine('why', holds) : commandLine('release', holds, `--token ${token}`),
    },
  };
}

/** For each of these deadlocks, one sentence for each side. */
export function deadlockSentences(cycles: FleetReport['deadlocks'], fleet: FleetReport): string[][] {
  const holders = holdersIn(fleet);
  return cycles.map((cycle) => sidesOf(cycle, holders));
}

function sidesOf(cycle: readonly DeadlockedCall[], holders: ReadonlyMap<string, readonly SeenHolder[]>): string[] {
  return cycle.map((call) => {
    const { instanceId, holds, wants, callSite } = call;
    const work = workOf(call, holders);
    const by = work === undefined ? plainOrQuoted(instanceId) : `${work} on ${plainOrQuoted(instanceId)}`;
    const at = callSite === undefined ? '' : ` at ${placeOf(callSite)}`;
    return `${by} holds ${quote(holds)} and waits for ${quote(wants)}${at}.`;
  });
}

/** The group of the lease is the work that is stuck. The group of the waiting call may only be the name of what it wants. */
function workOf(
  { instanceId, holds, group }: DeadlockedCall,
  holders: ReadonlyMap<string, readonly SeenHolder[]>,
): string | undefined {
  const holder = holders.get(holds)?.find((each) => each.instanceId === instanceId);
  return holder ? holder.work : namedGroup(group);
}

/** `ship (dist/orders.js:41:21)` without its brackets. */
function placeOf(callSite: string): string {
  return /\(([^()]+)\)$/.exec(callSite)?.[1] ?? callSite;
}

/** Calls that have timed out wait no longer. */
function timeoutFindings({ instances, askedAt }: FleetReport, told: ReadonlySet<string | undefined>): Finding[] {
  const sums = new Map<string, number>();
  for (const { timeouts } of instances) {
    for (const { resource, calls } of timeouts) sums.set(resource, (sums.get(resource) ?? 0) + calls);
  }
  return [...sums].flatMap(([resource, calls]) => {
    if (told.has(resource)) return [];
    return {
      severity: 'warning' as const,
      kind: 'timeouts' as const,
      sentence: `${quote(resource)}: ${count(calls, 'call')} timed out in the last minute.`,
      resource,
      since: askedAt - 60_000,
      action: {
        text: 'Hold the lock for less time, or raise waitMs.',
        command: 'npx nestjs-redis-lock contention',
      },
    };
  });
}

function waitText(waits: readonly Wait[]): string {
  const oldest = longDuration(Math.max(...waits.map(({ waitedMs }) => waitedMs)));
  if (waits.length === 1) return `1 call has waited for ${oldest}.`;
  return `${waits.length} calls wait, the oldest for ${oldest}.`;
}

function worksOf(waits: readonly Wait[]): string[] {
  const works = waits.flatMap(({ group }) => namedGroup(group) ?? []);
  return [...new Set(works)].slice(0, MAX_WORKS);
}

function culpritOf({ instanceId, work, callSite }: SeenHolder): NonNullable<Finding['culprit']> {
  return { instanceId, ...(work !== undefined && { work }), ...(callSite !== undefined && { callSite }) };
}
