import { LockError } from '../api/errors.js';
import type { LeaseLossReason, LeaseLostError, NotLeaderReason } from '../api/lease-errors.js';
import type { Holders, LockLabel } from '../api/holder.js';
import type { LockMode } from '../api/lock-options.js';

/** What every event says. */
interface OfService {
  /** The name of the lock service; `default` if it has none. */
  service: string;
}

/** What every event of a lock says. */
interface OfLock extends OfService {
  resource: string;
  /** The mode that the call has asked for. It stays the same when the lease is downgraded. */
  mode: LockMode;
  /** A static name of few values for metrics: `Class.method` of a decorated method, or a part of the resource. */
  group: string;
}

/** What every event of a lease says. */
interface OfLease extends OfLock {
  fencingToken: number;
}

/** What every event of a singleton job says. */
interface OfTick extends OfService {
  group: string;
  job: string;
  tick: string;
}

/** What every event of a leadership says. */
interface OfLeadership extends OfService {
  group: string;
  leadership: string;
  resource: string;
}

/** An order in which locks were taken inside each other: what a call held, and what it wanted then. */
export interface LockOrderEdge {
  /** The group of the lock that was held: by its name alone. */
  readonly held: string;
  /** The lock of the call that was the first to take them in this order. */
  readonly heldResource: string;
  readonly heldMode: LockMode;
  /** The line of the application that has taken it, if the stack of the inner call names it. */
  readonly heldAt?: string;
  /** The group of the lock that was wanted. */
  readonly wanted: string;
  readonly wantedResource: string;
  readonly wantedMode: LockMode;
  /** The line of the application that wanted it. */
  readonly wantedAt?: string;
}

/** Something that happened to a lock. For logs, metrics and alerts; it never carries a secret. */
export type LockEvent =
  /**
   * A lease begins. `hasWaited`: a `waiting` event of this call came before. `handedOn`: it came from another call of
   * this process, in memory. Each `acquired` is followed by one end: `released`, `lost`, `leftToExpire`,
   * or `releaseFailed` with `isEnd`.
   */
  | ({ type: 'acquired' } & OfLease & { waitedMs: number; hasWaited: boolean; handedOn: boolean; attempts: number })
  /**
   * A call begins to wait: for a holder, for its turn, or for a Redis that does not answer. It ends with `acquired` or
   * `notAcquired`, with `hasWaited`. The candidates of a leadership have no such event. `holders` has up to 8 of the
   * holders, as the last answer named them. `holderCount` says how many there are; 0 if that is not known. `place` is
   * the place in the queue of the store, from 1. Processes that have died may count. It is not set for a call that waits
   * behind another one of its process, and where it is not known.
   */
  | ({ type: 'waiting' } & OfLock & Holders & { place?: number })
  /** A call has waited for 5 s, and waits on. There is one such event for each call, with what `waiting` says. */
  | ({ type: 'waitingLong' } & OfLock & Holders & { waitedMs: number; place?: number })
  /**
   * A call to acquire failed. A busy `tryAcquire` counts as well. `resource` was not granted; `resources` has all that
   * the call asked for. `waitedMs` counts from when it asked for `resource`. `hasWaited`: a `waiting` event of this call
   * came before.
   */
  | ({ type: 'notAcquired' } & OfLock & {
        resources: readonly string[];
        waitedMs: number;
        hasWaited: boolean;
        error: LockError;
      })
  /** A lease ended as it should. */
  | ({ type: 'released' } & OfLease & { heldMs: number })
  /**
   * A lease ended while it was held, and its `signal` has aborted; or its release found that it had ended. The message
   * of `error` says why.
   */
  | ({ type: 'lost' } & OfLease & { heldMs: number; reason: LeaseLossReason; error: LeaseLostError })
  /**
   * A lease was not released, and nothing in this process refers to it any more. `callSite` is where it was acquired,
   * if that was recorded. `isRenewed`: it is held as long as the process lives, see the module's `onLeak`.
   */
  | ({ type: 'leaked' } & OfLease & { heldMs: number; callSite: string | undefined; isRenewed: boolean })
  /** A lease has been held for longer than `warnAfterMs`, and is held on. There is one such event for each lease. */
  | ({ type: 'heldLong' } & OfLease & { heldMs: number })
  /**
   * This process stood still for longer than a quarter of the length of this lease, which it renews. `stoodStillMs` is
   * how long at least. Each standstill of more than a third of a lease is told, except those of less than 70 ms.
   * `leftMs` is what is left of the lease, 0 if it is over. Of several leases, the one that ends first is named.
   */
  | ({ type: 'slowLoop' } & OfLease & { stoodStillMs: number; leaseMs: number; leftMs: number })
  /**
   * Calls of this process take locks inside each other in orders that make a circle, so they can wait for each other: a
   * deadlock. `edges` has the orders, the one that was seen last at the end. Each order that closes a circle is told once.
   */
  | ({ type: 'lockOrder' } & OfService & { edges: readonly LockOrderEdge[] })
  /**
   * A `cancellable` holder was asked to stop: a newer call wants the resource (`onBusy: 'cancelHolder'`). `holder` is its
   * process, and `by` that of the newer call. Both tell it.
   */
  | ({ type: 'superseded' } & OfLease & { holder: string; by: string })
  /** The lock service has closed, and a fixed lease (`watchdog: false`) is left to end by itself. */
  | ({ type: 'leftToExpire' } & OfLease & { heldMs: number })
  /** A lost lease was released. The current holder of the resource was not touched. */
  | ({ type: 'releasedAfterLoss' } & OfLease)
  /**
   * A release was not confirmed in time, or Redis refused it. It is sent again until it is confirmed, or the lock has
   * expired by itself. `isEnd`: no other event has told of the end of this lease.
   */
  | ({ type: 'releaseFailed' } & OfLease & { heldMs: number; isEnd: boolean; error: LockError })
  /** A renewal was not confirmed. It is tried again until the lease ends. */
  | ({ type: 'renewalFailed' } & OfLease & { error: LockError })
  /**
   * A renewal was confirmed after `failures` in a row had failed. `failedForMs` counts from when the first was sent.
   */
  | ({ type: 'renewalRecovered' } & OfLease & { failures: number; failedForMs: number })
  /**
   * A singleton job starts on this instance. `rerun`: the run was granted before to another instance, which did not
   * finish it. `attempt`: 1 for the first run of the tick, 2 for its first rerun. `manual` is set where a person or a
   * program asked for the run, and not the schedule. `catchUp` is set of the one run for all ticks that were missed.
   * `delayMs`: how late it starts by the clock of this process, below 0 if that is behind. It is not set where the tick is
   * no time.
   */
  | ({ type: 'tickStarted' } & OfTick & {
        rerun: boolean;
        attempt: number;
        manual?: true;
        catchUp?: true;
        delayMs?: number;
      })
  /**
   * A singleton job has ended on this instance. `ok`: its method returned. `error`: its method threw. `lost`: its lease
   * was lost before it ended, so another instance may have begun the run.
   */
  | ({ type: 'tickFinished' } & OfTick & {
        rerun: boolean;
        attempt: number;
        manual?: true;
        catchUp?: true;
        ranMs: number;
        outcome: 'ok' | 'error' | 'lost';
      })
  /**
   * A run on this instance has kept `ticks` later ticks of its job from running, the first of them for longer than
   * `warnAfterMs`: with `overlap: 'skip'` they were skipped, with `'wait'` they wait. There is one such event for each
   * run. `ranMs` is how long it has run.
   */
  | ({ type: 'overlapLong' } & OfTick & {
        manual?: true;
        catchUp?: true;
        overlap: 'skip' | 'wait';
        ranMs: number;
        ticks: number;
      })
  /**
   * A tick of a singleton job does not run here. `claimed`: another instance has it. `overlap`: an earlier run has
   * not ended. `paused`: the job is paused for the whole fleet; `by`, `pauseReason` and `until` as the caller of the pause
   * said. Only the first instance that asks for the tick says so, and the others say `claimed`. `crashed`: none of
   * `attempts` runs of the tick has finished, because their processes died or lost their leases, and `maxReruns` allows no
   * other one. Only one instance says so. `otherDate`: the job has a single date, and another instance has registered it
   * for another one, `registered`. `late`: it is too late for it, or a later tick of the job was claimed. `early`: it is due
   * further ahead than clocks may differ. `lateMs` is how late it is by the clock of Redis, below 0 if it is early.
   * `clockBehindMs` is how far the clock of this process is behind that of Redis, if that is more than `maxClockSkewMs`, and
   * below 0 if it is ahead.
   */
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'claimed' | 'overlap' })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'paused'; by?: string; pauseReason?: string; until?: number })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'otherDate'; registered: number })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'crashed'; attempts: number })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'late' | 'early'; lateMs: number; clockBehindMs?: number })
  /**
   * Ticks of a singleton job were due, and no instance claimed them. One instance of the fleet tells each of them, once.
   * `count` is how many. `first`, `last` and `ticks` are times in epoch milliseconds; `ticks` has the newest 100 of them.
   * `catchUp`: one run for all of them is owed (`onMissed: 'runOnce'`). `afterStop` is set if they were due while all
   * instances that have the job were shut down.
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
  /** A tick could not be claimed: Redis did not answer in time, or refused. */
  | ({ type: 'tickFailed' } & OfTick & { error: LockError })
  /** This instance begins to campaign. From now on it waits to be elected, until it resigns or closes. */
  | ({ type: 'campaigning' } & OfLeadership)
  /** This instance leads. `leadership` is the name given to `campaign`, `resource` is its lock, `leader:<name>`. */
  | ({ type: 'elected' } & OfLeadership & { fencingToken: number })
  /**
   * This instance no longer leads: its lease was lost, or it steps down and holds the lease until its work has ended.
   */
  | ({ type: 'demoted' } & OfLeadership & {
        fencingToken: number;
        reason: LeaseLossReason | NotLeaderReason;
        ledMs: number;
      })
  /** Redis refused a candidate. It campaigns again after a pause, which grows to half a minute. */
  | ({ type: 'campaignFailed' } & OfLeadership & { error: LockError })
  /** `onElected` or `onDemoted` threw, or rejected. */
  | ({ type: 'callbackFailed' } & OfLeadership & { callback: 'onElected' | 'onDemoted'; error: unknown })
  /**
   * A call of `forceRelease()` in this process has ended a lease; or the command line has, which one process reports.
   * `holder` is the process that had it, and `label` what it said of itself, if Redis answered that. `by` and `reason` as
   * the caller said.
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
  /**
   * A call in this process has paused or resumed a job for the whole fleet, or begins to run it (`runNow`). `by`, `reason`
   * and `until`, in milliseconds since 1970, as the caller said.
   */
  | ({ type: 'jobCommand' } & OfService & {
        group: string;
        job: string;
        command: 'pause' | 'resume' | 'runNow';
        by?: string;
        reason?: string;
        until?: number;
      })
  /**
   * The application closes, and waits up to `drainMs` for work that still holds leases. `resources` names the resource
   * of each. A wait of less than 250 ms is not reported.
   */
  | ({ type: 'draining' } & OfService & { resources: readonly string[]; drainMs: number })
  /**
   * That wait is over. `resources` names the resource of each lease that is still held. The signals of these leases
   * abort next, and they are no longer renewed.
   */
  | ({ type: 'drained' } & OfService & { resources: readonly string[]; waitedMs: number });

export type LockEventType = LockEvent['type'];

/** The events of some types. */
export type LockEventOf<T extends LockEventType> = Extract<LockEvent, { type: T }>;

/** What became of a call to acquire. `refused`: it cannot be granted, however long it waits. */
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

/** What became of a call that failed with an error of this code. */
export function outcomeOfCode(code: string): AcquireOutcome {
  return BY_CODE[code] ?? 'refused';
}

/** What became of a call that failed with this error. */
export function outcomeOfError(error: unknown): AcquireOutcome {
  return error instanceof LockError ? outcomeOfCode(error.code) : 'refused';
}
