import { LockError } from '../api/errors.js';
import type { LeaseLossReason, LeaseLostError, NotLeaderReason } from '../api/lease-errors.js';
import type { Holders, LockLabel } from '../api/holder.js';
import type { LockMode } from '../api/lock-options.js';

/** Fields of every event. */
interface OfService {
  /** The name of the lock service; `default` if it has none. */
  service: string;
}

/** Fields of every event of a lock. */
interface OfLock extends OfService {
  resource: string;
  /** The mode that the call requested. It stays the same when the lease is downgraded. */
  mode: LockMode;
  /**
   * A name with few distinct values (low cardinality), for metrics: `Class.method` of a decorated method, or a part of
   * the resource.
   */
  group: string;
}

/** Fields of every event of a lease. */
interface OfLease extends OfLock {
  fencingToken: number;
}

/** Fields of every event of a singleton job. */
interface OfTick extends OfService {
  group: string;
  job: string;
  tick: string;
}

/** Why a job runs. Neither: a tick is due. */
interface OfTrigger {
  manual?: true;
  catchUp?: true;
}

/** Which run of a tick it is. */
interface OfRun extends OfTrigger {
  rerun: boolean;
  attempt: number;
}

/** Fields of every event of a leadership. */
interface OfLeadership extends OfService {
  group: string;
  leadership: string;
  resource: string;
}

/** Fields of every event of a result of `once`. */
interface OfResult extends OfService {
  group: string;
  resource: string;
}

/** An order in which locks were nested: the lock that a call held, and the one that it then wanted. */
export interface LockOrderEdge {
  /** The group of the lock that was held, computed from its name. */
  readonly held: string;
  /** The lock that the first call with this order held. */
  readonly heldResource: string;
  readonly heldMode: LockMode;
  /** The call site that acquired it, if the stack of the inner call shows it. */
  readonly heldAt?: string;
  /** The group of the lock that was wanted. */
  readonly wanted: string;
  readonly wantedResource: string;
  readonly wantedMode: LockMode;
  /** The call site that wanted it. */
  readonly wantedAt?: string;
}

/** Something that happened to a lock, for logs, metrics and alerts. Never contains a secret. */
export type LockEvent =
  /**
   * A lease begins. `hasWaited`: the call emitted `waiting` first. `handedOn`: passed on in memory by another call of
   * this process. Exactly one of these events ends the lease: `released`, `lost`, `leaseAbandoned`, or `releaseFailed`
   * with `isEnd`.
   */
  | ({ type: 'acquired' } & OfLease & { waitedMs: number; hasWaited: boolean; handedOn: boolean; attempts: number })
  /**
   * A call starts waiting for a holder, its turn, or Redis. The wait ends with an `acquired` or `notAcquired` event
   * that has `hasWaited`. Candidates for a leadership don't emit it. `holders` has up to 8 of the `holderCount` holders
   * (0 if unknown). `place`: the place of this process in the queue, from 1, counting dead processes; only set for the
   * first waiting call of the process.
   */
  | ({ type: 'waiting' } & OfLock & Holders & { place?: number })
  /** A call has been waiting for 5 s, and still is. Emitted once per call. */
  | ({ type: 'waitingLong' } & OfLock & Holders & { waitedMs: number; place?: number })
  /**
   * A call failed to acquire a lock, such as a `tryAcquire` of a busy resource. `resource` is the one that was not
   * granted; `resources` lists all that the call requested. `waitedMs` is measured from the request for `resource`.
   */
  | ({ type: 'notAcquired' } & OfLock & {
        resources: readonly string[];
        waitedMs: number;
        hasWaited: boolean;
        error: LockError;
      })
  /** A lease was released. */
  | ({ type: 'released' } & OfLease & { heldMs: number })
  /** A lease ended while it was held, and its `signal` aborted; or its release found that it had already ended. */
  | ({ type: 'lost' } & OfLease & { heldMs: number; reason: LeaseLossReason; error: LeaseLostError })
  /**
   * A lease was not released, and nothing in this process refers to it any more. `callSite`: the code that acquired it,
   * if recorded. `isRenewed`: it is still renewed, so it stays held (`onLeak`).
   */
  | ({ type: 'leaked' } & OfLease & { heldMs: number; callSite: string | undefined; isRenewed: boolean })
  /** A lease has been held for longer than `warnAfterMs`, and still is. Emitted once per lease. */
  | ({ type: 'heldLong' } & OfLease & { heldMs: number })
  /**
   * The event loop was blocked for at least `blockedMs`, more than a quarter of this lease. A block that lasts for more
   * than a third of a lease, and more than 70 ms, is always reported. `leftMs`: the time left on the lease. If several
   * leases are affected, the event is about the one that ends first.
   */
  | ({ type: 'eventLoopBlocked' } & OfLease & { blockedMs: number; leaseMs: number; leftMs: number })
  /**
   * Calls of this process nest locks in orders that form a cycle, so that they can deadlock. `edges` has the orders,
   * the newest last. Emitted once per order that closes a cycle.
   */
  | ({ type: 'lockOrder' } & OfService & { edges: readonly LockOrderEdge[] })
  /**
   * A `cancellable` holder (the process `holder`) was asked to stop, because a newer call (of `by`) wants the resource.
   * Both processes emit it.
   */
  | ({ type: 'superseded' } & OfLease & { holder: string; by: string })
  /** The lock service has closed and leaves a fixed lease (`watchdog: false`) to expire. */
  | ({ type: 'leaseAbandoned' } & OfLease & { heldMs: number })
  /** A lost lease was released, without touching the current holder. */
  | ({ type: 'releasedAfterLoss' } & OfLease)
  /**
   * A release was not confirmed in time, or Redis rejected it. It is retried until the lock has expired. `isEnd`: no
   * other event has reported the end of this lease.
   */
  | ({ type: 'releaseFailed' } & OfLease & { heldMs: number; isEnd: boolean; error: LockError })
  /** A renewal was not confirmed. It is retried until the lease ends. */
  | ({ type: 'renewalFailed' } & OfLease & { error: LockError })
  /** A renewal was confirmed after `failures` failed in a row, over `failedForMs`. */
  | ({ type: 'renewalRecovered' } & OfLease & { failures: number; failedForMs: number })
  /**
   * A run of a singleton job starts on this instance. `rerun`: another instance started the run and didn't finish it.
   * `attempt`: 2 for the first rerun. `manual`: requested by a person or program. `catchUp`: the one run for all missed
   * ticks. `delayMs`: how late it starts, by this process's clock; undefined if the tick isn't a time.
   */
  | ({ type: 'tickStarted' } & OfTick & OfRun & { delayMs?: number })
  /**
   * A run of a singleton job has ended on this instance. `ok`: the job returned. `error`: the job threw. `lost`: the
   * run lost its lease before it ended, so another instance may have started it again.
   */
  | ({ type: 'tickFinished' } & OfTick & OfRun & { ranMs: number; outcome: 'ok' | 'error' | 'lost' })
  /**
   * A run on this instance has blocked `ticks` later ticks of its job, the first for longer than `warnAfterMs`. They
   * were skipped or are waiting (`overlap`). Emitted once per run, `ranMs` after it started.
   */
  | ({ type: 'overlapLong' } & OfTick & OfTrigger & { overlap: 'skip' | 'wait'; ranMs: number; ticks: number })
  /**
   * A tick of a singleton job doesn't run here. `claimed`: another instance has it. `overlap`: an earlier run has not
   * ended. `paused`: the job is paused for the whole fleet; only the first instance reports this, the others report
   * `claimed`. `crashed`: all `attempts` runs crashed, and `maxReruns` allows no more; one instance reports it.
   * `otherDate`: another instance `registered` this single-date job for another date. `late`: too late, or a later tick
   * was claimed. `early`: due further ahead than `maxClockSkewMs` allows. `lateMs`: by Redis's clock, negative if
   * early. `clockBehindMs`: how far this clock is behind Redis's, if more than `maxClockSkewMs`.
   */
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'claimed' | 'overlap' })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'paused'; by?: string; pauseReason?: string; until?: number })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'otherDate'; registered: number })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'crashed'; attempts: number })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'late' | 'early'; lateMs: number; clockBehindMs?: number })
  /**
   * `count` ticks of a singleton job were due and no instance claimed them. Each tick is reported once, by one
   * instance. `ticks`: the newest 100. `catchUp`: one run for all of them is pending (`onMissed: 'runOnce'`).
   * `afterStop`: they were due while all instances with the job were shut down.
   */
  | ({ type: 'tickMissed' } & OfService & {
        group: string;
        job: string;
        count: number;
        first: number;
        last: number;
        ticks: readonly number[];
        catchUp: boolean;
        afterStop?: true;
      })
  /** A tick could not be claimed: Redis didn't answer in time, or rejected the command. */
  | ({ type: 'tickFailed' } & OfTick & { error: LockError })
  /**
   * A call of `once` returned a result. `run`: it did the work. `hit`: the result was already stored. `wait`: another
   * call did the work in the meantime. `resource` is the lock of the work, `once:<key>`.
   */
  | ({ type: 'onceReturned' } & OfResult & { outcome: 'run' | 'hit' | 'wait'; waitedMs: number })
  /** A result of `once` was returned but not stored, because its text is longer than `maxBytes`. */
  | ({ type: 'resultTooLarge' } & OfResult & { bytes: number; maxBytes: number })
  /**
   * A stored result isn't valid JSON, or `parse` threw. It is treated as missing, so the work runs again and replaces
   * it.
   */
  | ({ type: 'resultUnreadable' } & OfResult & { error: unknown })
  /** This instance starts campaigning: it is a candidate until it resigns or closes. */
  | ({ type: 'campaigning' } & OfLeadership)
  /** This instance leads. `leadership` is the name passed to `campaign`, `resource` its lock, `leader:<name>`. */
  | ({ type: 'elected' } & OfLeadership & { fencingToken: number })
  /**
   * This instance no longer leads: its lease was lost, or it steps down and holds the lease until its work has ended.
   */
  | ({ type: 'demoted' } & OfLeadership & {
        fencingToken: number;
        reason: LeaseLossReason | NotLeaderReason;
        ledMs: number;
      })
  /** Redis rejected a candidate's command, which is retried after pauses of up to half a minute. */
  | ({ type: 'campaignFailed' } & OfLeadership & { error: LockError })
  /** `onElected`, `onDemoted` or `onWait` threw or rejected. The first two have a `leadership`. */
  | ({ type: 'callbackFailed' } & OfService & {
        group: string;
        resource: string;
        leadership?: string;
        callback: 'onElected' | 'onDemoted' | 'onWait';
        error: unknown;
      })
  /**
   * A lease was ended by `forceRelease()` in this process, or from the command line (then one process reports it).
   * `holder` and `label`: the process that held it, and its label.
   */
  | ({ type: 'forceReleased' } & OfService & {
        group: string;
        resource: string;
        fencingToken: number;
        holder?: string;
        label?: LockLabel;
        by?: string;
        reason?: string;
      })
  /** A call in this process paused or resumed a job for the whole fleet, or started a run of it (`runNow`). */
  | ({ type: 'jobCommand' } & OfService & {
        group: string;
        job: string;
        command: 'pause' | 'resume' | 'runNow';
        by?: string;
        reason?: string;
        until?: number;
      })
  /**
   * The application closes and waits up to `drainMs` for work that still holds leases of `resources`. Not emitted for
   * waits below 250 ms.
   */
  | ({ type: 'draining' } & OfService & { resources: readonly string[]; drainMs: number })
  /**
   * The wait for work at shutdown has ended. `resources` are still held: the signals of their leases abort next, and
   * the leases are no longer renewed.
   */
  | ({ type: 'drained' } & OfService & { resources: readonly string[]; waitedMs: number });

export type LockEventType = LockEvent['type'];

/** The events of some types. */
export type LockEventOf<T extends LockEventType> = Extract<LockEvent, { type: T }>;

/** The outcome of a call to acquire. `refused`: it cannot be granted, however long it waits. */
export type AcquireOutcome =
  | 'acquired'
  | 'busy'
  | 'timeout'
  | 'queue_full'
  | 'aborted'
  | 'unavailable'
  | 'shutdown'
  | 'refused';

const BY_CODE: Readonly<Record<string, AcquireOutcome>> = {
  LOCK_BUSY: 'busy',
  LOCK_TIMEOUT: 'timeout',
  LOCK_QUEUE_FULL: 'queue_full',
  LOCK_ABORTED: 'aborted',
  LOCK_UNAVAILABLE: 'unavailable',
  LOCK_SHUTDOWN: 'shutdown',
};

/** The codes of the errors that have an outcome of their own. */
export const CODES_WITH_OUTCOME: readonly string[] = Object.keys(BY_CODE);

export function outcomeOfCode(code: string): AcquireOutcome {
  return BY_CODE[code] ?? 'refused';
}

export function outcomeOfError(error: unknown): AcquireOutcome {
  return error instanceof LockError ? outcomeOfCode(error.code) : 'refused';
}
