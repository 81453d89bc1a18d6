import { hostname } from 'node:os';
import type { LocalQueues, WaitingNow } from '../../../../kernel/acquiring/local-queues.js';
import type { LockOrderEdge } from '../../../../kernel/events/events.js';
import type { BlockedTime } from '../../../../kernel/events/telemetry.js';
import type { LocalHolder } from '../../../../kernel/holding/store-lease.js';
import type { Runtime } from '../../../../kernel/holding/runtime.js';
import type { Watchdog } from '../../../../kernel/holding/watchdog.js';
import { RecentTimes } from '../../../../kernel/util/recent-times.js';
import { applicationSiteOf, callSiteOf } from '../../../../kernel/util/call-site.js';
import type { FleetAnswer } from './lock-fleet.js';
import { RecentBlockers, RecentCounts } from './recent-counts.js';
import type { Scope } from './scope.js';
import { entryOf } from '../../../../kernel/util/objects.js';

/** The version of this package. A test compares it with package.json. */
export const VERSION = '0.1.0';
/** So many leases, and so many waiting calls, are looked at closely. More have no room in an answer. */
const MAX_ENTRIES = 100;
const MAX_ORDERS = 3;
/** More than any call has waited. */
const MAX_AGE_MS = 1e12;
/** A failed renewal and a blocked event loop are reported for this long. */
const RECENT_MS = 60_000;

export interface OwnSources extends Runtime {
  readonly localQueues: LocalQueues;
  readonly watchdog: Watchdog;
  readonly leaderships?: () => FleetAnswer['leaderships'];
  readonly jobs?: () => readonly string[];
  readonly onBlocked: (listener: (blocked: BlockedTime) => void) => () => void;
}

/** The report of this process, from its memory. */
export class InstanceReport {
  readonly #startedAt: number;
  readonly #host = hostname();
  readonly #counts: RecentCounts;
  readonly #blockers: RecentBlockers;
  /** Losses are rare, so they are always counted, and the first question has them. */
  readonly #losses: RecentTimes;
  readonly #stopLosses: () => void;
  readonly #calls = new WeakMap<object, number>();
  #lastCall = 0;

  constructor(private readonly deps: OwnSources) {
    this.#startedAt = deps.clock.now();
    this.#counts = new RecentCounts(deps);
    this.#blockers = new RecentBlockers(deps);
    this.#losses = new RecentTimes(deps.clock);
    this.#stopLosses = deps.observers.add(() => this.#losses.add(), ['lost']);
  }

  /** @param loopDelayMs how long a turn of the event loop took just now */
  read(scope: Scope, loopDelayMs: number): FleetAnswer {
    const { store, clock, watchdog, localQueues, observers, lockOrder, leaderships, jobs } = this.deps;
    const now = clock.now();
    const groupOf = (resource: string, group?: string): string => observers.groups.of(resource, group);
    const held = oldest(
      watchdog.holders().filter((holder) => scope.has(resourceOf(holder), () => groupOfHolder(holder, groupOf))),
      ({ acquiredAt }) => acquiredAt,
    );
    const waiting = oldest(
      [...localQueues.waits()].filter(({ resource, call }) =>
        scope.has(resource, () => groupOf(resource, call.options.group)),
      ),
      // Calls that hold something first: they may be part of a deadlock.
      ({ call, holds }) => (holds.length > 0 ? call.startedAt - MAX_AGE_MS : call.startedAt),
    );
    const leading = leaderships?.() ?? [];
    const names = jobs?.() ?? [];
    return {
      instanceId: store.instanceId,
      host: this.#host,
      pid: process.pid,
      version: VERSION,
      uptimeMs: now - this.#startedAt,
      loopDelayMs,
      blockedMs: watchdog.blockedMs(now - RECENT_MS),
      hearing: (store.hearing?.trustedForMs ?? 0) > 0,
      health: this.#health(now),
      held: held.first.map((holder) => leaseOf(holder, groupOfHolder(holder, groupOf), now)),
      waiting: waiting.first.map((wait) => this.#waitOf(wait, groupOf(wait.resource, wait.call.options.group), now)),
      leaderships: leading.slice(0, MAX_ENTRIES),
      jobs: names.slice(0, MAX_ENTRIES),
      lastMinute: this.#counts.read(),
      lostLately: this.#losses.count(),
      timeouts: this.#counts.timeouts(),
      lockOrders: lockOrder.cycles.slice(0, MAX_ORDERS).map((edges) => edges.map(sideOf)),
      blockers: this.#blockers.read(),
      more: {
        held: held.more,
        waiting: waiting.more,
        leaderships: Math.max(0, leading.length - MAX_ENTRIES),
        jobs: Math.max(0, names.length - MAX_ENTRIES),
      },
    };
  }

  /** Counts no more. */
  stop(): void {
    this.#counts.stop();
    this.#blockers.stop();
    this.#stopLosses();
  }

  #health(now: number): FleetAnswer['health'] {
    const { closing, watchdog } = this.deps;
    if (closing.aborted) return 'shuttingDown';
    return (watchdog.lastFailureAt ?? -Infinity) > now - RECENT_MS ? 'renewalsFail' : 'up';
  }

  #waitOf(wait: WaitingNow, group: string, now: number): FleetAnswer['waiting'][number] {
    const { call, resource, place, holds } = wait;
    const callSite = applicationSiteOf(call.nested?.origin);
    return {
      // Most calls are never asked about.
      call: entryOf(this.#calls, call, () => ++this.#lastCall),
      resource,
      mode: call.options.mode,
      waitedMs: Math.max(0, call.waitedMs(now)),
      ...(place !== undefined && { place }),
      group,
      ...(callSite !== undefined && { callSite: fromWorkingDirectory(callSite) }),
      holds: holds.map(({ owner, fencingToken }) => ({ resource: owner.resource, fencingToken })),
    };
  }
}

function resourceOf({ storeLease }: LocalHolder): string {
  return storeLease.owner.resource;
}

function groupOfHolder(holder: LocalHolder, groupOf: (resource: string, group?: string) => string): string {
  return groupOf(resourceOf(holder), holder.options.group);
}

function leaseOf(holder: LocalHolder, group: string, now: number): FleetAnswer['held'][number] {
  const { storeLease, fencingToken, acquiredAt, deadline, renewable, origin } = holder;
  const callSite = holder.callSite ?? callSiteOf(origin);
  return {
    resource: resourceOf(holder),
    mode: storeLease.mode,
    fencingToken,
    heldMs: Math.max(0, now - acquiredAt),
    leftMs: Math.max(0, deadline - now),
    group,
    isRenewed: renewable,
    ...(callSite !== undefined && { callSite: fromWorkingDirectory(callSite) }),
    isLeaked: holder.isLeaked ?? false,
  };
}

function sideOf({ heldResource: holds, wantedResource: wants, wantedAt }: LockOrderEdge) {
  return { holds, wants, ...(wantedAt !== undefined && { callSite: fromWorkingDirectory(wantedAt) }) };
}

/** Shortens a call site: `Orders.ship (dist/orders.js:41:21)`. */
function fromWorkingDirectory(callSite: string): string {
  const folder = `${process.cwd()}/`;
  return callSite.replace('file://', '').replace(folder, '').replace(encodeURI(folder), '');
}

/** The first of them, and how many others there are. In one pass: there may be a hundred thousand. */
function oldest<T>(
  all: readonly T[],
  since: (each: T) => number,
): { readonly first: readonly T[]; readonly more: number } {
  const first: { readonly each: T; readonly at: number }[] = [];
  for (const each of all) {
    const at = since(each);
    if (first.length === MAX_ENTRIES && at >= first.at(-1)!.at) continue;
    let index = first.length;
    while (index > 0 && first[index - 1]!.at > at) index--;
    first.splice(index, 0, { each, at });
    if (first.length > MAX_ENTRIES) first.pop();
  }
  return { first: first.map(({ each }) => each), more: all.length - first.length };
}
