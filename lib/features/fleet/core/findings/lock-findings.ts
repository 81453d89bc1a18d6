import { LONG_WAIT_MS } from '../../../../kernel/acquiring/waits.js';
import { namedGroup } from '../../../../kernel/api/holder.js';
import { longDuration } from '../../../../kernel/util/durations.js';
import { count } from '../../../../kernel/util/plurals.js';
import { commandLine, plainOrQuoted, quote } from '../../../../kernel/util/quoted.js';
import type { FleetReport } from '../roll/lock-fleet.js';
import { isWell, locksIn, type FleetHolder, type FleetLock } from '../roll/locks-in.js';
import type { Finding } from './finding.js';
import type { DeadlockedCall } from '../../../../kernel/api/busy-errors.js';

/** Many calls that have waited for a second are worth a look, like one that has waited for `LONG_WAIT_MS`. */
const MANY = 10;
const MANY_MS = 1_000;
/** Waits of this length, or this many calls, mean that work is blocked. */
const CRITICAL_MS = 60_000;
const MAX_WORKS = 5;

type Locks = ReadonlyMap<string, FleetLock>;
type Waits = FleetLock['waits'];

/** One finding for each resource that is in trouble, and one for each deadlock. */
export function lockFindings(fleet: FleetReport): Finding[] {
  const { askedAt, deadlocks } = fleet;
  const locks = locksIn(fleet);
  const deadlocked = new Set(deadlocks.flat().map(({ holds }) => holds));
  const found: Finding[] = deadlocks.map((cycle) => deadlockFinding(cycle, locks, askedAt));
  for (const lock of locks.values()) {
    const finding = deadlocked.has(lock.resource) ? undefined : resourceFinding(lock, askedAt);
    if (finding) found.push(finding);
  }
  const told = new Set(found.map(({ resource }) => resource));
  return [...found, ...timeoutFindings(fleet, told), ...orderFindings(fleet)];
}

/** The worst holder comes first: the others share the resource with it. */
const WORST: readonly FleetHolder['life'][] = ['dead', 'silent', 'unknown', 'leaked', 'notRenewed', 'alive'];

function resourceFinding(
  { resource, holders, waits, oldestWaitMs: oldestMs }: FleetLock,
  askedAt: number,
): Finding | undefined {
  const rank = ({ life }: FleetHolder): number => WORST.indexOf(life === 'notRenewed' ? 'alive' : life);
  const [holder] = [...holders].sort((a, b) => rank(a) - rank(b) || b.heldMs - a.heldMs);
  const isLong = oldestMs >= LONG_WAIT_MS || (waits.length >= MANY && oldestMs >= MANY_MS);
  const isHarmless = holder === undefined || isWell(holder);
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
      action: { text: 'Check again: a waiter takes a free lock when it next renews its place.', ...inspect },
    };
  }
  const { life, instanceId, fencingToken, leftMs, heldMs } = holder;
  const who = plainOrQuoted(instanceId);
  const by = workOn(namedGroup(holder.group), instanceId);
  const left = longDuration(leftMs);
  const severity = waits.length > 0 ? 'critical' : 'warning';
  const release = { command: commandLine('release', resource, `--token ${fencingToken}`) };
  if (life === 'dead') {
    return {
      ...shown,
      severity,
      kind: 'holderDead',
      sentence: `${name} is held by ${by}, which is dead.${waiting} The lock is free in ${left}.`,
      action: { text: 'No work runs under this lease: wait until it expires, or end it.', ...release },
    };
  }
  if (life === 'silent') {
    return {
      ...shown,
      severity,
      kind: 'holderSilent',
      sentence: `${name} is held by ${by}, which does not answer: it is frozen, or its event loop is blocked.${waiting}`,
      action: {
        text: `Stop the process of ${who}: otherwise its work continues when it wakes up. The lock is free ${left} from now.`,
        command: commandLine('who', instanceId),
      },
    };
  }
  if (life === 'unknown') {
    return {
      ...shown,
      severity: 'warning',
      kind: 'holderUnknown',
      sentence: `${name} is held by ${by}, which is not known to be subscribed: it may be alive or dead.${waiting}`,
      action: { text: 'Check whether the lease is renewed. If so, its holder is alive.', ...inspect },
    };
  }
  if (life === 'leaked') {
    const at = holder.callSite === undefined ? '' : ` at ${holder.callSite}`;
    return {
      ...shown,
      severity,
      kind: 'leaked',
      sentence: `${name} was leaked by ${who}: it was acquired${at} and never released, and no work runs under it.${waiting}`,
      action: {
        text: 'End the lease. Then fix the code that acquired it: using() and await using always release.',
        ...release,
      },
    };
  }
  const isCritical = oldestMs >= CRITICAL_MS || waits.length >= MANY;
  const state = life === 'alive' ? '' : ` Its lease is not renewed, so the lock is free in ${left}.`;
  return {
    ...shown,
    severity: isCritical ? 'critical' : 'warning',
    kind: 'longWait',
    sentence: `${name} has been held for ${longDuration(heldMs)} by ${by}, which is alive.${waiting}${state}`,
    action: {
      text: 'Check what the holder is doing. Its work continues even if you end the lease.',
      command: commandLine('who', instanceId),
    },
  };
}

function deadlockFinding(cycle: readonly DeadlockedCall[], locks: Locks, askedAt: number): Finding {
  const resources = cycle.map(({ holds }) => holds);
  const waiting = [...new Set(resources)].flatMap((resource) => locks.get(resource)?.waits ?? []);
  const [first] = cycle as readonly [DeadlockedCall];
  const { instanceId, holds, callSite } = first;
  const token = locks.get(holds)?.holders.find((each) => each.instanceId === instanceId)?.fencingToken;
  const work = workOf(first, locks);
  return {
    severity: 'critical',
    kind: 'deadlock',
    sentence: `Deadlock: ${sidesOf(cycle, locks).join(' ')}`,
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
  const locks = locksIn(fleet);
  return cycles.map((cycle) => sidesOf(cycle, locks));
}

function sidesOf(cycle: readonly DeadlockedCall[], locks: Locks): string[] {
  return cycle.map((call) => {
    const { instanceId, holds, wants, callSite } = call;
    const at = callSite === undefined ? '' : ` at ${placeOf(callSite)}`;
    return `${workOn(workOf(call, locks), instanceId)} holds ${quote(holds)} and waits for ${quote(wants)}${at}.`;
  });
}

/** The group of the lease is the work that is stuck. The group of the waiting call may only be the name of what it wants. */
function workOf({ instanceId, holds, group }: DeadlockedCall, locks: Locks): string | undefined {
  const holder = locks.get(holds)?.holders.find((each) => each.instanceId === instanceId);
  return namedGroup(holder ? holder.group : group);
}

function workOn(work: string | undefined, instanceId: string): string {
  const who = plainOrQuoted(instanceId);
  return work === undefined ? who : `${work} on ${who}`;
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

/** All instances run the same code, so the first one that has seen two orders names them. */
function orderFindings({ instances }: FleetReport): Finding[] {
  const found = new Map<string, Finding>();
  for (const { instanceId, lockOrders } of instances) {
    for (const cycle of lockOrders) {
      const sites = cycle.map(({ holds, wants, callSite }) => callSite ?? `${holds} ${wants}`);
      const key = JSON.stringify(sites.sort((a, b) => (a < b ? -1 : 1)));
      if (found.has(key)) continue;
      const [first] = cycle;
      const sides = cycle.map(({ holds, wants, callSite }) => {
        const at = callSite === undefined ? '' : ` at ${placeOf(callSite)}`;
        return `It locked ${quote(wants)} while it held ${quote(holds)}${at}.`;
      });
      found.set(key, {
        severity: 'warning',
        kind: 'lockOrder',
        sentence: `${plainOrQuoted(instanceId)} takes locks in different orders, which can deadlock. ${sides.join(' ')}`,
        ...(first && { resource: first.holds }),
        culprit: { instanceId, ...(first?.callSite !== undefined && { callSite: first.callSite }) },
        action: {
          text: 'Take the locks in one order everywhere, or all of them in one call.',
          command: commandLine('who', instanceId),
        },
      });
    }
  }
  return [...found.values()];
}

function waitText(waits: Waits): string {
  const oldest = longDuration(Math.max(...waits.map(({ waitedMs }) => waitedMs)));
  if (waits.length === 1) return `1 call has waited for ${oldest}.`;
  return `${waits.length} calls are waiting, the oldest for ${oldest}.`;
}

function worksOf(waits: Waits): string[] {
  const works = waits.flatMap(({ group }) => namedGroup(group) ?? []);
  return [...new Set(works)].slice(0, MAX_WORKS);
}

function culpritOf({ instanceId, group, callSite }: FleetHolder): NonNullable<Finding['culprit']> {
  const work = namedGroup(group);
  return { instanceId, ...(work !== undefined && { work }), ...(callSite !== undefined && { callSite }) };
}
