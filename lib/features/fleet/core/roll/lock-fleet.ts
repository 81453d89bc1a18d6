import type { Holder } from '../../../../kernel/api/holder.js';
import type { LockMode } from '../../../../kernel/api/lock-mode.js';
import { flag, integer, milliseconds, type OptionsOf, OptionTable, text } from '../../../../kernel/api/validation.js';
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
   * The maximum number of leases and waiting calls to list per instance, the oldest first. An answer has at most 4 kB,
   * so it may list fewer.
   *
   * @allowed 1 to 100
   * @default 100
   */
  limit?: number;
  /**
   * Time to wait for answers. Ends sooner once all instances that Redis knows have answered.
   *
   * @allowed 10 ms to 4 s
   * @default 300
   */
  timeoutMs?: number;
  /**
   * Also finds holders that no instance lists, by `locks.list()`, which scans the database. By default only for
   * resources that a listed call waits for.
   *
   * @default false
   */
  scan?: boolean;
}

export const FLEET_OPTIONS = new OptionTable({
  prefix: text(/^[^]{0,512}$/, '0 to 512 characters').default(''),
  group: text(/^[^]{1,512}$/, '1 to 512 characters'),
  limit: integer(1, 100, 'entries').default(100),
  timeoutMs: milliseconds(10, 4_000).default(300),
  scan: flag().default(false),
} satisfies OptionsOf<FleetOptions>);

/** A lease that an instance holds. */
export interface FleetLease {
  readonly resource: string;
  readonly mode: LockMode;
  readonly fencingToken: number;
  /** For how long this call has held it, in milliseconds. */
  readonly heldMs: number;
  /** The rest of the lease unless it is renewed, as that process trusts it, in milliseconds. */
  readonly leftMs: number;
  /** The group of the call, as events and metrics have it. */
  readonly group: string;
  /** `true` if that process renews it. */
  readonly isRenewed: boolean;
  /**
   * The site of the `acquire` call, relative to the working directory of that process, for a lease that has been held
   * for more than half a second.
   */
  readonly callSite?: string;
  /** `true` if nothing in that process refers to it any more, so that nothing can release it. */
  readonly isLeaked: boolean;
}

/** A call of an instance that waits for a resource. */
export interface FleetWait {
  /** The number of the call in that process. A call keeps its number, so you can recognize it in the next roll call. */
  readonly call: number;
  readonly resource: string;
  readonly mode: LockMode;
  /** Its wait so far, in milliseconds. */
  readonly waitedMs: number;
  /** Its place in the queue of Redis, counted from 1. Only known of the first call of an instance. */
  readonly place?: number;
  readonly group: string;
  /**
   * The site of the call, relative to the working directory of that process, for calls inside of work under a lease.
   * Not known for all.
   */
  readonly callSite?: string;
  /**
   * The leases that its caller holds: by the work that it belongs to, and the parts that a call for several resources
   * already has. `held` of that instance has the same resource and token, unless its list was cut.
   */
  readonly holds: readonly { readonly resource: string; readonly fencingToken: number }[];
}

/** The report of one instance: one lock service of one process. */
export interface FleetInstance {
  readonly instanceId: string;
  /** `true` for the instance that asked. */
  readonly isThisInstance: boolean;
  readonly host: string;
  readonly pid: number;
  /** The version of this package. */
  readonly version: string;
  /** For how long its lock service has existed, in milliseconds. */
  readonly uptimeMs: number;
  /** The duration of one turn of its event loop when it was asked, in milliseconds. */
  readonly loopDelayMs: number;
  /**
   * The longest time within the last minute for which its event loop was blocked, as its renewals have noticed, in
   * milliseconds.
   */
  readonly blockedMs: number;
  /** `true` if messages of grants are known to arrive there. If not, its waiting calls ask every second. */
  readonly hearing: boolean;
  /** `renewalsFail`: a renewal has failed within the last minute. `shuttingDown`: it takes no new locks. */
  readonly health: 'up' | 'renewalsFail' | 'shuttingDown';
  /** Its leases, the longest held first. */
  readonly held: readonly FleetLease[];
  /** Its waiting calls: first the ones that hold something, each sorted by the longest wait. */
  readonly waiting: readonly FleetWait[];
  /** The leaderships that it campaigns for. `elections`: how often it was elected in the last ten minutes. */
  readonly leaderships: readonly { readonly name: string; readonly isLeader: boolean; readonly elections: number }[];
  /** The singleton jobs whose code it has. */
  readonly jobs: readonly string[];
  /**
   * Counts of the last minute in that instance. Counting begins with the first roll call, and ends a minute after the
   * last one: `null` in the first answer. `forMs` is the time for which it has counted.
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
  /** The number of leases that were lost in the last ten minutes, whether it counts or not. */
  readonly lostLately: number;
  /**
   * The resources whose waits timed out there in the last minute, the most time-outs first: three at most. Counted like
   * `lastMinute`.
   */
  readonly timeouts: readonly { readonly resource: string; readonly calls: number }[];
  /**
   * The groups that its calls have waited for, the longest waits first: five at most, of the last five to ten minutes.
   * Counted like `lastMinute`.
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
   * Locks that its calls have taken in opposite orders, so that they can deadlock: each is a cycle of calls that wanted
   * one lock under another. The first three that it has seen.
   */
  readonly lockOrders: readonly (readonly {
    readonly holds: string;
    readonly wants: string;
    /** The site of the call that wanted it, relative to the working directory of that process. */
    readonly callSite?: string;
  }[])[];
  /** The numbers of entries that were left out. */
  readonly more: {
    readonly held: number;
    readonly waiting: number;
    readonly leaderships: number;
    readonly jobs: number;
  };
}

/**
 * What is known of a process. `alive`: it has answered. `silent`: it is subscribed, and has not answered. `dead`: it is
 * not subscribed, and a lease that it renewed before has missed two renewals. `unknown`: it is not subscribed, or Redis
 * cannot tell.
 */
export type InstanceLife = 'alive' | 'silent' | 'dead' | 'unknown';

/** A holder that no instance has listed. */
export interface UnlistedHolder extends Holder {
  readonly resource: string;
  readonly life: InstanceLife;
  /** `true` if its instance has answered, and so is alive. Its list may have been too long. */
  readonly hasAnswered: boolean;
}

/** The reports of all instances: what the findings are derived from. */
export interface FleetReport {
  /** The name of the lock service that has asked. */
  readonly service: string;
  /** When the question was sent, by the clock of Redis, in epoch milliseconds. Callers within a second share it. */
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
   * The ids of instances that are subscribed and have not answered: frozen, too busy, without messages, or of an old
   * version. On a cluster, and without the right `+pubsub|channels`, not all of them are known.
   */
  readonly silent: readonly string[];
  /**
   * The ids of all subscribed instances, including those of other databases; `null` if Redis does not list all of them.
   */
  readonly subscribed: readonly string[] | null;
  /** The number of answers that could not be read: forged, too long, or of a newer version. */
  readonly unreadable: number;
  /**
   * Holders that no instance has listed: dead ones, above all. Found of resources that a listed call waits for, at most
   * 100, and with `scan` of all.
   */
  readonly unlisted: readonly UnlistedHolder[];
  /** `true` if `scan` has found more than 10,000 resources, and has looked at the first of them only. */
  readonly isScanCut: boolean;
  /**
   * Calls that wait for each other in a cycle: each wants a lock of the next one. Found among the listed calls, so a
   * question about some resources finds fewer of them. Only waits count that had begun before the first instance
   * answered.
   */
  readonly deadlocks: readonly (readonly DeadlockedCall[])[];
}

/** The report of one instance, independent of the asking one. */
export type FleetAnswer = Omit<FleetInstance, 'isThisInstance'>;
