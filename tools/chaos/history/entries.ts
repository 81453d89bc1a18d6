// The entries of a history. Each process writes JSON lines about itself, synchronously, so that a killed process has
// written down everything it did. `at` is the machine's monotonic clock in milliseconds, the same for all processes.

/** The common part of all lines. */
interface Said {
  readonly at: number;
  /** The instance that wrote it. A restarted process has a new one; `chaos` injects the faults. */
  readonly process: string;
}

export type ChaosMode = 'exclusive' | 'reentrant' | 'read' | 'write' | 'semaphore';

/** A call begins. `call` is unique over the whole history. */
export interface AcquireInvoked extends Said {
  readonly type: 'invoke';
  readonly op: 'acquire';
  readonly call: string;
  /** Several where they are acquired together. */
  readonly resources: readonly string[];
  readonly mode: ChaosMode;
  /** For a semaphore: the permits of this call, and the total. */
  readonly permits?: number;
  readonly total?: number;
  readonly leaseMs: number;
  /** Absent: until it is granted. */
  readonly waitMs?: number;
  /** `true` if it queues; otherwise it polls, or does not wait. */
  readonly queues: boolean;
  /** The call that it re-enters. */
  readonly inside?: string;
  /** The timeout of the worker's own signal. Without one, no abort may be reported. */
  readonly abortMs?: number;
  /** The worker's limit, if any. Without one, no full queue may be reported. */
  readonly maxWaiters?: number;
}

/** Granted. `at` was looked at after the grant, so the lease is certainly held from then on. */
export interface AcquireOk extends Said {
  readonly type: 'ok';
  readonly op: 'acquire';
  readonly call: string;
  /** One for each resource, in the order of the resources. */
  readonly tokens: readonly number[];
  /** Until when the lease may be trusted if nothing renews it. */
  readonly until: number;
}

/** `fail`: certainly not held. `unknown`: Redis did not reply, so the resource may be blocked for a while. */
export interface AcquireEnded extends Said {
  readonly type: 'fail' | 'unknown';
  readonly op: 'acquire';
  readonly call: string;
  /** The code of the error; `null` of a `tryAcquire` that found it busy. */
  readonly code: string | null;
  /** The error message. */
  readonly why?: string;
  /** `true` if the error has a cause. */
  readonly hasCause?: boolean;
}

/**
 * The holder looks at its lease: at the clock (`at`), then at `remainingMs()` (`until` is their sum), then at `isHeld()`. In this
 * order a lease that is held has a deadline after `at`. At the signal it looks before all this if the lease is held, else after it.
 */
export interface Looked extends Said {
  readonly type: 'look';
  readonly call: string;
  readonly held: boolean;
  readonly aborted: boolean;
  readonly until: number;
}

/** The signal of the lease has aborted. The lease is looked at whenever the loop runs, so `until` is as new as `loopRanAt`. */
export interface Lost extends Said {
  readonly type: 'lost';
  readonly call: string;
  readonly reason: string;
  /** The deadline that the lease had when it was last looked at. */
  readonly until: number;
  /** The last run of the event loop before this, by a timer: a stalled process could not see it sooner. */
  readonly loopRanAt: number;
}

/** The end of a hold, of its exclusiveness, or of some of its permits. `at` of `invoke` was looked at before the call. */
export interface Ended extends Said {
  readonly type: 'invoke' | 'ok' | 'fail' | 'unknown';
  readonly op: 'release' | 'downgrade' | 'lower';
  readonly call: string;
  /** When some permits were given back: how many it has still. */
  readonly left?: number;
  readonly code?: string;
  /** The error message. */
  readonly why?: string;
}

/** The reply of the witness to a write. */
export interface Wrote extends Said {
  readonly type: 'wrote';
  readonly call: string;
  readonly resource: string;
  readonly token: number;
  readonly accepted: boolean;
  /** `true` if the lease was still held at the reply: then the write was made under the lock. */
  readonly heldAfter: boolean;
}

/** The observations of the witness, in its order. */
export interface Witnessed extends Said {
  readonly type: 'witnessed';
  readonly resource: string;
  readonly token: number;
  readonly accepted: boolean;
  /** The writer's value of the unfenced counter, and its value at the write: they differ if an update was lost. */
  readonly read: number;
  readonly found: number;
}

/** A run of a singleton job: it begins, it ends, and the call that ran it comes back. */
export interface Ticked extends Said {
  readonly type: 'tick';
  readonly phase: 'start' | 'end' | 'done';
  readonly job: string;
  readonly tick: string;
  readonly onCrash: 'skip' | 'retry';
  readonly rerun: boolean;
  readonly token: number;
  /** Until when its lease may be trusted if nothing renews it; `at` where it is lost. */
  readonly until: number;
}

/** The holders and the waiters, in queue order. Redis was asked at `from` and had replied at `at`. */
export interface QueueSeen extends Said {
  readonly type: 'queue';
  readonly from: number;
  readonly resource: string;
  readonly holders: readonly { readonly instanceId: string; readonly token: number }[];
  readonly waiters: readonly string[];
}

/** The life of a process, as it says itself, and as `chaos` sees it (`victim`). */
export interface Lived extends Said {
  readonly type: 'started' | 'closing' | 'closed' | 'died';
  readonly victim?: string;
}

export interface FaultSeen extends Said {
  readonly type: 'fault';
  readonly id: number;
  readonly kind: string;
  readonly phase: 'begin' | 'healed';
  /** The processes it strikes; all of them where Redis itself is struck. */
  readonly victims: readonly string[];
  /** `true` if data are lost or the clock moves. Allows overlaps, but no stale writes. */
  readonly breaksPromises: boolean;
  /** Redis forgets the last tick it gave. A token may then be given again, but only if its clock is also behind: `movesClock`. */
  readonly losesData?: boolean;
  readonly movesClock?: boolean;
  /** Set at the end if it could not be injected, for example because the victim never held the resource. */
  readonly missed?: boolean;
}

/** From `from` to `at` Redis answered none of these processes. The harness made sure of both ends. */
export interface Unanswered extends Said {
  readonly type: 'unanswered';
  readonly from: number;
  readonly victims: readonly string[];
}

/**
 * A stall of the event loop: it ran at `from`, and not again before `at`. Recorded from about 50 ms, whether caused by
 * a fault or by a busy machine: the process got no promises in that time and sent nothing.
 */
export interface Stalled extends Said {
  readonly type: 'stall';
  readonly from: number;
}

/**
 * A late reply to the harness: sent at `from`, received at `at`. Recorded from about 50 ms, in worlds without an
 * observer.
 */
export interface AnsweredLate extends Said {
  readonly type: 'late';
  readonly from: number;
}

/** The clock of the day, by which Redis ends leases, was set: by how much. No fault of ours does that to the machine. */
export interface ClockSet extends Said {
  readonly type: 'clockSet';
  readonly byMs: number;
}

/** An unexpected failure: an unhandled rejection, a warning, an error that isn't the library's. */
export interface Crashed extends Said {
  readonly type: 'crash';
  readonly error: string;
}

/** Remains after all processes have closed. */
export interface Leftovers extends Said {
  readonly type: 'leftovers';
  readonly keys: readonly string[];
  readonly clients: readonly string[];
  readonly channels: readonly string[];
}

/** Handles that keep a process alive after it has closed its application. */
export interface StillOpen extends Said {
  readonly type: 'open';
  readonly handles: readonly string[];
}

export type Entry =
  | AcquireInvoked
  | AcquireOk
  | AcquireEnded
  | Looked
  | Lost
  | Ended
  | Wrote
  | Witnessed
  | Ticked
  | QueueSeen
  | Lived
  | FaultSeen
  | Unanswered
  | Stalled
  | AnsweredLate
  | ClockSet
  | Crashed
  | Leftovers
  | StillOpen;
