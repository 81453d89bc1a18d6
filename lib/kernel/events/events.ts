import { LockError } from '../api/errors.js';
import type { LeaseLossReason, LeaseLostError, NotLeaderReason } from '../api/lease-errors.js';
import type { Holders, LockLabel } from '../api/holder.js';
import type { LockMode } from '../api/lock-options.js';

// Fields of every event.
interface OfService {
  /** The name of the lock service; `default` if it has none. */
  service: string;
}

// Fields of every event of a lock.
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

// Fields of every event of a lease.
interface OfLease extends OfLock {
  fencingToken: number;
}

// Fields of every event of a singleton job.
interface OfTick extends OfService {
  group: string;
  job: string;
  tick: string;
}

// Why a job runs. Neither: a tick is due.
interface OfTrigger {
  manual?: true;
  catchUp?: true;
}

// Which run of a tick it is.
interface OfRun extends OfTrigger {
  rerun: boolean;
  attempt: number;
}

// Fields of every event of a leadership.
interface OfLeadership extends OfService {
  group: string;
  leadership: string;
  resource: string;
}

// Fields of every event of a result of `once`.
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
  /** The call site that acquired the held lock, if known. */
  readonly heldAt?: string;
  /** The group of the lock that was wanted. */
  readonly wanted: string;
  readonly wantedResource: string;
  readonly wantedMode: LockMode;
  /** The call site that requested the wanted lock, if known. */
  readonly wantedAt?: string;
}

/** Something that happened to a lock, for logs, metrics and alerts. Never contains a secret. */
export type LockEvent =
  /**
   * A lease begins. `hasWaited`: the call emitted `waiting` first. `handedOn`: another
   * call of this process passed the lease on in memory. The lease ends with exactly one of these events: `released`,
   * `lost`, `leaseAbandoned`, or `releaseFailed` with `isEnd`.
   */
  | ({ type: 'acquired' } & OfLease & { waitedMs: number; hasWaited: boolean; handedOn: boolean; attempts: number })
  /**
   * A call starts to wait for a holder, for its turn, or for Redis. The wait ends with an `acquired` or `notAcquired`
   * event that has `hasWaited`. Candidates for a leadership don't emit `waiting`. `holders`: at most 8 of the holders.
   * `holderCount`: the number of all holders, 0 if unknown. `place`: the place of this process in the queue, from 1;
   * dead processes count until their places expire. Only set for the first waiting call of the process.
   */
  | ({ type: 'waiting' } & OfLock & Holders & { place?: number })
  /** A call has been waiting for 5 s. Emitted once per call. */
  | ({ type: 'waitingLong' } & OfLock & Holders & { waitedMs: number; place?: number })
  /**
   * A call failed to acquire a lock; for example, `tryAcquire` found the resource busy. `resource`: the resource that
   * was not granted. `resources`: all resources that the call requested. `waitedMs`: the time since the call requested
   * `resource`.
   */
  | ({ type: 'notAcquired' } & OfLock & {
        resources: readonly string[];
        waitedMs: number;
        hasWaited: boolean;
        error: LockError;
      })
  /** A lease was released. */
  | ({ type: 'released' } & OfLease & { heldMs: number })
  /**
   * A lease ended before it was released, and its `signal` aborted. Also emitted if a release finds that the lease has
   * already ended.
   */
  | ({ type: 'lost' } & OfLease & { heldMs: number; reason: LeaseLossReason; error: LeaseLostError })
  /**
   * A lease was not released, and no code refers to it any more. `callSite`: the code that acquired the lease, if
   * recorded. `isRenewed`: the lease is still renewed (see the option `onLeak`).
   */
  | ({ type: 'leaked' } & OfLease & { heldMs: number; callSite: string | undefined; isRenewed: boolean })
  /** A lease has been held for longer than `warnAfterMs`. Emitted once per lease. */
  | ({ type: 'heldLong' } & OfLease & { heldMs: number })
  /**
   * The event loop was blocked for at least `blockedMs`, which is more than a quarter of this lease's length. A block
   * of more than a third of the lease and more than 70 ms is always reported; a shorter one may be missed. `leftMs`:
   * the time left on the lease. If several leases are affected, the event is about the one that ends first.
   */
  | ({ type: 'eventLoopBlocked' } & OfLease & { blockedMs: number; leaseMs: number; leftMs: number })
  /**
   * Calls of this process nest locks in orders that form a cycle, so the calls can deadlock. `edges`: these orders, the
   * newest last. Emitted once for each order that closes a cycle.
   */
  | ({ type: 'lockOrder' } & OfService & { edges: readonly LockOrderEdge[] })
  /**
   * A holder with the option `cancellable` was asked to stop, because a newer call wants the resource. `holder`: the
   * process that holds it. `by`: the process of the newer call. Both processes emit the event.
   */
  | ({ type: 'superseded' } & OfLease & { holder: string; by: string })
  /** The lock service has closed, and leaves a lease that isn't renewed (`watchdog: false`) to expire. */
  | ({ type: 'leaseAbandoned' } & OfLease & { heldMs: number })
  /** A lost lease was released. The current holder is not affected. */
  | ({ type: 'releasedAfterLoss' } & OfLease)
  /**
   * A release was not confirmed in time, or Redis rejected it. The release is retried until the lock has expired.
   * `isEnd`: no other event has reported the end of this lease.
   */
  | ({ type: 'releaseFailed' } & OfLease & { heldMs: number; isEnd: boolean; error: LockError })
  /** A renewal was not confirmed. It is retried until the lease ends. */
  | ({ type: 'renewalFailed' } & OfLease & { error: LockError })
  /**
   * A renewal was confirmed after `failures` failed ones. `failedForMs`: how long renewals failed.
   */
  | ({ type: 'renewalRecovered' } & OfLease & { failures: number; failedForMs: number })
  /**
   * A run of a singleton job starts on this instance. `rerun`: another instance started this tick and didn't finish it.
   * `attempt`: 1 for the first run of the tick, 2 for the first rerun. `manual`: a person or a program requested the
   * run. `catchUp`: this is the one run for all missed ticks. `delayMs`: how late the run starts, by the clock of this
   * process; undefined if the tick isn't a time.
   */
  | ({ type: 'tickStarted' } & OfTick & OfRun & { delayMs?: number })
  /**
   * A run of a singleton job has ended on this instance. The `outcome` is `ok` if the job returned, `error` if it
   * threw, and `lost` if the run lost its lease before it ended: another instance may have started it again.
   */
  | ({ type: 'tickFinished' } & OfTick & OfRun & { ranMs: number; outcome: 'ok' | 'error' | 'lost' })
  /**
   * A run on this instance has blocked later ticks of its job for longer than `warnAfterMs`. `ticks`: the number of
   * these ticks. `overlap`: whether they were skipped or are waiting. `ranMs`: the time since the run started. Emitted
   * once per run.
   */
  | ({ type: 'overlapLong' } & OfTick & OfTrigger & { overlap: 'skip' | 'wait'; ranMs: number; ticks: number })
  /**
   * A tick of a singleton job doesn't run on this instance, for one of these reasons. `claimed`: another instance has
   * claimed the tick. `overlap`: an earlier run has not ended. `paused`: the job is paused; the first instance reports
   * this, the others report `claimed`. `crashed`: all runs of the tick (`attempts`) crashed, and `maxReruns` allows no
   * more; only one instance reports this. `otherDate`: the job has a single date, and another instance registered a
   * different one (`registered`). `late`: the tick was claimed too late, or after a later tick. `early`: the tick is
   * due further in the future than `maxClockSkewMs` allows. `lateMs`: how late the claim was by Redis's clock; negative
   * if early. `clockBehindMs`: how far the clock of this process is behind Redis's, if by more than `maxClockSkewMs`.
   */
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'claimed' | 'overlap' })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'paused'; by?: string; pauseReason?: string; until?: number })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'otherDate'; registered: number })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'crashed'; attempts: number })
  | ({ type: 'tickSkipped' } & OfTick & { reason: 'late' | 'early'; lateMs: number; clockBehindMs?: number })
  /**
   * Ticks of a singleton job were due, but no instance claimed them. Each tick is reported once, by one instance.
   * `count`: their number. `ticks`: the newest 100. `catchUp`: one run for all of them is pending (`onMissed:
   * 'runOnce'`). `afterStop`: they were due while all instances with the job were shut down.
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
   * A call of `once` returned a result. The `outcome` is `run` if the call did the work, `hit` if the result was
   * stored, and `wait` if the call waited for another one that did the work. `resource`: the lock of the work,
   * `once:<key>`.
   */
  | ({ type: 'onceReturned' } & OfResult & { outcome: 'run' | 'hit' | 'wait'; waitedMs: number })
  /** A result of `once` was not stored, because its text is longer than `maxBytes`. */
  | ({ type: 'resultTooLarge' } & OfResult & { bytes: number; maxBytes: number })
  /**
   * A stored result is invalid JSON, or `parse` threw. The work runs again, and replaces the result.
   */
  | ({ type: 'resultUnreadable' } & OfResult & { error: unknown })
  /** This instance is now a candidate for the leadership, until it resigns or closes. */
  | ({ type: 'campaigning' } & OfLeadership)
  /**
   * This instance leads from now on. `leadership`: the name passed to `campaign`. `resource`: the lock of the
   * leadership, `leader:<name>`.
   */
  | ({ type: 'elected' } & OfLeadership & { fencingToken: number })
  /**
   * This instance no longer leads: either its lease was lost, or it is stepping down and holds the lease until its work
   * has ended.
   */
  | ({ type: 'demoted' } & OfLeadership & {
        fencingToken: number;
        reason: LeaseLossReason | NotLeaderReason;
        ledMs: number;
      })
  /** Redis rejected a command of a candidate. The command is retried after pauses of up to 38 s. */
  | ({ type: 'campaignFailed' } & OfLeadership & { error: LockError })
  /**
   * `onElected`, `onDemoted` or `onWait` threw or rejected. `leadership` is only set for `onElected` and `onDemoted`.
   */
  | ({ type: 'callbackFailed' } & OfService & {
        group: string;
        resource: string;
        leadership?: string;
        callback: 'onElected' | 'onDemoted' | 'onWait';
        error: unknown;
      })
  /**
   * A lease was ended by `forceRelease()` in this process, or from the command line, which only one process reports.
   * `holder`: the process that held the lease. `label`: its label.
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
  /** A call in this process paused or resumed a job for all instances, or started a run of it (`runNow`). */
  | ({ type: 'jobCommand' } & OfService & {
        group: string;
        job: string;
        command: 'pause' | 'resume' | 'runNow';
        by?: string;
        reason?: string;
        until?: number;
      })
  /**
   * The application is closing, and waits up to `drainMs` for work that still holds leases of `resources`. Not emitted
   * if the wait is shorter than 250 ms.
   */
  | ({ type: 'draining' } & OfService & { resources: readonly string[]; drainMs: number })
  /**
   * The wait for work at shutdown has ended. `resources`: those that are still held. The signals of their leases abort
   * next, and the leases are no longer renewed.
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
