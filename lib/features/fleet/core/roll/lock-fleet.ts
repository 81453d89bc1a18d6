import type { Holder } from '../../../../kernel/api/holder.js';
import type { LockMode } from '../../../../kernel/api/lock-mode.js';
import { Option, type OptionsOf, OptionTable } from '../../../../kernel/api/validation.js';
import type { DeadlockedCall } from '../../../../kernel/api/busy-errors.js';

/** Options of `locks.fleet()`. */
export interface FleetOptions {
  /**
   * Lists only leases and waiting calls of resources whose names start with this.
   *
   * @allowed 0 to 512 characters
   * @default ''
   */
  prefix?: string;
  /**
   * Lists only leases and waiting calls of this group.
   *
   * @allowed 1 to 512 characters
   * @default none
   */
  group?: string;
  /**
   * The maximum number of leases and waiting calls to list per instance, the oldest first. An answer is limited to 4
   * kB, so it may list fewer.
   *
   * @allowed 1 to 100
   * @default 100
   */
  limit?: number;
  /**
   * Time to wait for answers. The wait ends earlier if all instances that Redis knows of have answered.
   *
   * @allowed 10 ms to 4 s
   * @default 300
   */
  timeoutMs?: number;
  /**
   * `true` also scans the database, like `locks.list()`, for holders that no instance lists. By default, such holders
   * are only looked up for resources that a listed call waits for.
   *
   * @default false
   */
  scan?: boolean;
}

export const FLEET_OPTIONS = new OptionTable({
  prefix: Option.text(/^[^]{0,512}$/, '0 to 512 characters').default(''),
  group: Option.text(/^[^]{1,512}$/, '1 to 512 characters'),
  limit: Option.integer(1, 100, 'entries').default(100),
  timeoutMs: Option.milliseconds(10, 4_000).default(300),
  scan: Option.flag().default(false),
} satisfies OptionsOf<FleetOptions>);

/** A lease that an instance holds. */
export interface FleetLease {
  readonly resource: string;
  readonly mode: LockMode;
  readonly fencingToken: number;
  /** Milliseconds since the call acquired the resource. */
  readonly heldMs: number;
  /** The time until the lease ends unless it is renewed, by the clock of its process, in milliseconds. */
  readonly leftMs: number;
  /** The group of the call, as events and metrics have it. */
  readonly group: string;
  /** `true` if that process renews it. */
  readonly isRenewed: boolean;
  /** The call site, relative to the working directory of that process. Set after half a second. */
  readonly callSite?: string;
  /** `true` if no code in that process references the lease any more, so nothing can release it. */
  readonly isLeaked: boolean;
}

/** A call of an instance that waits for a resource. */
export interface FleetWait {
  /** The number of the call in that process. A call keeps its number, so you can recognize it in the next report. */
  readonly call: number;
  readonly resource: string;
  readonly mode: LockMode;
  /** The time that the call has waited so far, in milliseconds. */
  readonly waitedMs: number;
  /** The place in the queue in Redis, counted from 1. Only known for the first waiting call of an instance. */
  readonly place?: number;
  readonly group: string;
  /**
   * The call site, relative to the working directory of that process. Only recorded for calls inside of work under a
   * lease, and not for all of them.
   */
  readonly callSite?: string;
  /** The leases that its caller already holds. The instance lists them in `held` too, unless that list was cut. */
  readonly holds: readonly { readonly resource: string; readonly fencingToken: number }[];
}

/** The report of one instance: one lock service of one process. */
export interface FleetInstance {
  readonly instanceId: string;
  /** `true` for the instance that called `fleet()`. */
  readonly isThisInstance: boolean;
  readonly host: string;
  readonly pid: number;
  /** The version of this package. */
  readonly version: string;
  /** The age of the lock service, in milliseconds. */
  readonly uptimeMs: number;
  /** The duration of one turn of the event loop when the instance was asked, in milliseconds. */
  readonly loopDelayMs: number;
  /**
   * The longest time for which the event loop was blocked within the last minute, as far as renewals noticed it, in
   * milliseconds.
   */
  readonly blockedMs: number;
  /**
   * `true` if messages about granted locks are known to reach it. Otherwise, its waiting calls ask Redis every second.
   */
  readonly hearing: boolean;
  /** `renewalsFail`: a renewal has failed within the last minute. `shuttingDown`: it acquires no new locks. */
  readonly health: 'up' | 'renewalsFail' | 'shuttingDown';
  /** The leases, the longest held first. */
  readonly held: readonly FleetLease[];
  /** The waiting calls: first calls that already hold a lease, then the others, each sorted by the longest wait. */
  readonly waiting: readonly FleetWait[];
  /** The leaderships that the instance campaigns for. `elections`: how often it was elected in the last ten minutes. */
  readonly leaderships: readonly { readonly name: string; readonly isLeader: boolean; readonly elections: number }[];
  /** The names of the singleton jobs that the instance can run. */
  readonly jobs: readonly string[];
  /**
   * Counts of the last minute. An instance counts from the first call of `fleet()` until a minute after the last one,
   * so its first report has `null`. `forMs`: the time for which it has counted.
   */
  readonly lastMinute: {
    readonly forMs: number;
    /** The number of granted leases. */
    readonly acquired: number;
    /** The number of calls that were not granted. */
    readonly notAcquired: number;
    readonly lost: number;
    /** The number of calls that waited, and timed out. */
    readonly timedOut: number;
  } | null;
  /** The number of leases that the instance lost in the last ten minutes, even if `lastMinute` is `null`. */
  readonly lostLately: number;
  /**
   * Up to three resources for which calls timed out in the last minute, the most time-outs first. Counted like
   * `lastMinute`.
   */
  readonly timeouts: readonly { readonly resource: string; readonly calls: number }[];
  /**
   * Up to five groups that calls waited for in the last five to ten minutes, the longest waits first. Counted like
   * `lastMinute`, but until ten minutes after the last call of `fleet()`.
   */
  readonly blockers: readonly {
    /** The group of the calls that waited. */
    readonly waiter: string;
    /** The group of the holders. */
    readonly holder: string;
    readonly waitedMs: number;
    readonly calls: number;
  }[];
  /**
   * Locks that calls of the instance have acquired in opposite orders, so that the calls can deadlock. Each entry is a
   * cycle of calls that wanted one lock while they held another. Only the first three cycles are listed.
   */
  readonly lockOrders: readonly (readonly {
    readonly holds: string;
    readonly wants: string;
    /** The call site that requested the wanted lock, relative to the working directory of that process. */
    readonly callSite?: string;
  }[])[];
  /** The number of entries that were left out of each list. */
  readonly more: {
    readonly held: number;
    readonly waiting: number;
    readonly leaderships: number;
    readonly jobs: number;
  };
}

/**
 * The state of a process, as far as it is known. `alive`: it has answered. `silent`: it is subscribed to the messages
 * of the fleet, but has not answered. `dead`: it is not subscribed, and a lease that it renewed before has missed two
 * renewals. `unknown`: it is not subscribed, or Redis cannot tell.
 */
export type InstanceLife = 'alive' | 'silent' | 'dead' | 'unknown';

/** The reports of all instances. The findings are derived from them. */
export interface FleetReport {
  /** The name of the lock service. */
  readonly service: string;
  /** When the instances were asked, by the clock of Redis, in epoch milliseconds. */
  readonly askedAt: number;
  /**
   * `complete`: all instances that Redis knew have answered. `partial`: some have not, or an answer could not be read.
   * `unknown`: Redis does not know their number, for example on a cluster.
   */
  readonly completeness: 'complete' | 'partial' | 'unknown';
  /** The number of instances that Redis asked; `null` if it does not know. */
  readonly asked: number | null;
  /** The instances that have answered, by their ids. */
  readonly instances: readonly FleetInstance[];
  /**
   * The ids of instances that are subscribed but have not answered. They are frozen, too busy, cut off from messages,
   * or run an old version. On a cluster, or without the permission `+pubsub|channels`, not all of them are known.
   */
  readonly silent: readonly string[];
  /**
   * The ids of all instances that are subscribed to messages, including instances of other databases of this Redis;
   * `null` if Redis does not list all of them.
   */
  readonly subscribed: readonly string[] | null;
  /** The number of answers that could not be read: forged, too long, or of a newer version. */
  readonly unreadable: number;
  /**
   * Holders that no instance has listed, most of them dead. They are looked up for up to 100 resources that a listed
   * call waits for; with `scan`, for all resources.
   */
  readonly unlisted: readonly (Holder & {
    readonly resource: string;
    readonly life: InstanceLife;
    /** `true` if its instance has answered, so it is alive; its list may have been cut. */
    readonly hasAnswered: boolean;
  })[];
  /** `true` if `scan` found more than 10,000 resources, and only checked that many. */
  readonly isScanCut: boolean;
  /**
   * Calls that wait for each other in a cycle: each wants a lock that the next one holds. Only listed calls are
   * checked, so with a `prefix` or `group`, some cycles may be missing.
   */
  readonly deadlocks: readonly (readonly DeadlockedCall[])[];
}

/** The report of one instance, independent of the asking one. */
export type FleetAnswer = Omit<FleetInstance, 'isThisInstance'>;
