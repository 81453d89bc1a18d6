import type { LockError } from '../api/errors.js';
import type { LeaseLossReason, LeaseLostError, NotLeaderReason } from '../api/lease-errors.js';
import type { LockMode } from '../api/lock-options.js';
import type { SeenHolder } from '../api/seen-holders.js';

/** Something that happened to a lock. For logs, metrics and alerts; it never carries a secret. */
export type LockEvent =
  /** A lease begins. */
  | { type: 'acquired'; resource: string; mode: LockMode; fencingToken: number; waitedMs: number; attempts: number }
  /**
   * A call has waited for 5 s, and waits on. There is one such event for each call, and none for the candidates of a
   * leadership. `holders` has up to 8 of the holders, as the last answer named them. `holderCount` says how many there
   * are; 0 if that is not known.
   */
  | {
      type: 'waiting';
      resource: string;
      mode: LockMode;
      waitedMs: number;
      holders: readonly SeenHolder[];
      holderCount: number;
    }
  /** A call to acquire failed. A busy `tryAcquire` counts as well. */
  | { type: 'notAcquired'; resource: string; error: LockError }
  /**
   * A call to acquire failed because of the lock of another library (`alsoLock`): its Redis did not answer in time, or
   * refused.
   */
  | { type: 'foreignFailed'; resource: string; error: LockError }
  /** A lease ended as it should. */
  | { type: 'released'; resource: string; fencingToken: number; heldMs: number }
  /**
   * A lease ended while it was held, and its `signal` has aborted; or its release found that it had ended. The message
   * of `error` says why.
   */
  | { type: 'lost'; resource: string; fencingToken: number; reason: LeaseLossReason; error: LeaseLostError }
  /**
   * A lease was not released, and nothing in this process refers to it any more. `callSite` is where it was acquired,
   * if that was recorded. `isRenewed`: it is held as long as the process lives, see the module's `onLeak`.
   */
  | {
      type: 'leaked';
      resource: string;
      fencingToken: number;
      heldMs: number;
      callSite: string | undefined;
      isRenewed: boolean;
    }
  /** A lease was transferred: the process that adopts it goes on with the same token. */
  | { type: 'transferred'; resource: string; fencingToken: number }
  /** A lost lease was released. The current holder of the resource was not touched. */
  | { type: 'releasedAfterLoss'; resource: string; fencingToken: number }
  /**
   * A release was not confirmed in time. It is sent again until the lock has expired by itself, unless Redis refuses
   * it.
   */
  | { type: 'releaseFailed'; resource: string; fencingToken: number; error: LockError }
  /** A renewal was not confirmed. It is tried again until the lease ends. */
  | { type: 'renewalFailed'; resource: string; fencingToken: number; error: LockError }
  /**
   * A renewal was confirmed after `failures` in a row had failed. `failedForMs` counts from when the first was sent.
   */
  | { type: 'renewalRecovered'; resource: string; fencingToken: number; failures: number; failedForMs: number }
  /**
   * A singleton job starts on this instance. `rerun`: the run was granted before to another instance, which did not
   * finish it.
   */
  | { type: 'tickStarted'; job: string; tick: string; rerun: boolean }
  /** A singleton job has ended on this instance. */
  | { type: 'tickFinished'; job: string; tick: string; ranMs: number }
  /**
   * A tick of a singleton job does not run here. `claimed`: another instance has it. `overlap`: an earlier run has
   * not ended. `foreign`: a process with the old release has its lock (`alsoLock`). `late`: it is too late for it, or
   * a later tick of the job was claimed. `early`: it is due further ahead than clocks may differ. `lateMs` is how late
   * it is by the clock of Redis, below 0 if it is early. `clockBehindMs` is how far the clock of this process is
   * behind that of Redis, if that is more than `maxClockSkewMs`, and below 0 if it is ahead.
   */
  | { type: 'tickSkipped'; job: string; tick: string; reason: 'claimed' | 'overlap' | 'foreign' }
  | {
      type: 'tickSkipped';
      job: string;
      tick: string;
      reason: 'late' | 'early';
      lateMs: number;
      clockBehindMs?: number;
    }
  /** A tick could not be claimed: Redis did not answer in time, or refused. */
  | { type: 'tickFailed'; job: string; tick: string; error: LockError }
  /** This instance begins to campaign. From now on it waits to be elected, until it resigns or closes. */
  | { type: 'campaigning'; leadership: string; resource: string }
  /** This instance leads. `leadership` is the name given to `campaign`, `resource` is its lock, `leader:<name>`. */
  | { type: 'elected'; leadership: string; resource: string; fencingToken: number }
  /**
   * This instance no longer leads: its lease was lost, or it steps down and holds the lease until its work has ended.
   */
  | {
      type: 'demoted';
      leadership: string;
      resource: string;
      fencingToken: number;
      reason: LeaseLossReason | NotLeaderReason;
      ledMs: number;
    }
  /** Redis refused a candidate. It campaigns again after a pause, which grows to half a minute. */
  | { type: 'campaignFailed'; leadership: string; resource: string; error: LockError }
  /** `onElected` or `onDemoted` threw, or rejected. */
  | {
      type: 'callbackFailed';
      leadership: string;
      resource: string;
      callback: 'onElected' | 'onDemoted';
      error: unknown;
    }
  /**
   * The application closes, and waits up to `drainMs` for work that still holds leases. `resources` names the resource
   * of each. A wait of less than 250 ms is not reported.
   */
  | { type: 'draining'; resources: readonly string[]; drainMs: number }
  /**
   * That wait is over. `resources` names the resource of each lease that is still held. The signals of these leases
   * abort next, and they are no longer renewed.
   */
  | { type: 'drained'; resources: readonly string[]; waitedMs: number };

export type LockEventType = LockEvent['type'];

/** The events of some types. */
export type LockEventOf<T extends LockEventType> = Extract<LockEvent, { type: T }>;
