// What a history consists of: what each process says of itself, one JSON line each, written before it goes on, so that a
// process that is killed has said everything it did. `at` is the machine's monotonic clock in milliseconds, the same for
// all processes.

/** What every line says. */
interface Said {
  readonly at: number;
  /** The instance that says it. A process that is started anew has another one; `chaos` injects the faults. */
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
  /** Of a semaphore: how many permits this call takes, and how many there are. */
  readonly permits?: number;
  readonly total?: number;
  readonly leaseMs: number;
  /** Absent: until it is granted. */
  readonly waitMs?: number;
  /** Whether it stands in the queue; otherwise it polls, or does not wait. */
  readonly queues: boolean;
  /** The call that it re-enters. */
  readonly inside?: string;
  /** The worker's own signal aborts after so many milliseconds: else nobody may hear that the caller gave up. */
  readonly abortMs?: number;
  /** Where the worker sets it: else nobody may hear that a queue is full. */
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

/** `fail`: certainly not held. `unknown`: Redis did not say, so it may have been granted to nobody for a while. */
export interface AcquireEnded extends Said {
  readonly type: 'fail' | 'unknown';
  readonly op: 'acquire';
  readonly call: string;
  /** The code of the error; `null` of a `tryAcquire` that found it busy. */
  readonly code: string | null;
  /** What the error said. */
  readonly why?: string;
  /** Whether the error has a cause. */
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
  /** When the event loop last ran before this, by a timer of its own: a process that stood still could not see it sooner. */
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
  /** What the error said. */
  readonly why?: string;
}

/** What the witness answered to a write. */
export interface Wrote extends Said {
  readonly type: 'wrote';
  readonly call: string;
  readonly resource: string;
  readonly token: number;
  readonly accepted: boolean;
  /** Whether the lease was held when the answer was there: then the write was made under the lock. */
  readonly heldAfter: boolean;
}

/** What the witness itself saw, in its order. */
export interface Witnessed extends Said {
  readonly type: 'witnessed';
  readonly resource: string;
  readonly token: number;
  readonly accepted: boolean;
  /** What the writer had read of the unfenced counter, and what it was by then: different where an update was lost. */
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

/** Who holds and who waits, in the order of the queue. Redis was asked at `from`, and had answered at `at`. */
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
  /** What one Redis cannot keep its word under: data lost, its clock moved. Overlaps are expected, stale writes are not. */
  readonly breaksPromises: boolean;
  /** Redis forgets the last tick it gave. A token may then be given again, but only if its clock is also behind: `movesClock`. */
  readonly losesData?: boolean;
  readonly movesClock?: boolean;
  /** Said when it is over: it did not come to pass, as where nobody held what the victim was to hold. */
  readonly missed?: boolean;
}

/** From `from` to `at` Redis answered none of these processes. The harness made sure of both ends. */
export interface Unanswered extends Said {
  readonly type: 'unanswered';
  readonly from: number;
  readonly victims: readonly string[];
}

/**
 * The event loop of the process stood still: it ran at `from`, and not again before `at`. Said of more than some 50 ms, whether
 * a fault is behind it or a busy machine: nothing was promised to it meanwhile, and nothing was sent.
 */
export interface Stalled extends Said {
  readonly type: 'stall';
  readonly from: number;
}

/** Redis answered the harness late: asked at `from`, and not before `at`. Said of more than some 50 ms, where there is no observer. */
export interface AnsweredLate extends Said {
  readonly type: 'late';
  readonly from: number;
}

/** The clock of the day, by which Redis ends leases, was set: by how much. No fault of ours does that to the machine. */
export interface ClockSet extends Said {
  readonly type: 'clockSet';
  readonly byMs: number;
}

/** What nobody expects: an unhandled rejection, a warning, an error that is none of the library's. */
export interface Crashed extends Said {
  readonly type: 'crash';
  readonly error: string;
}

/** What is left when everybody has closed. */
export interface Leftovers extends Said {
  readonly type: 'leftovers';
  readonly keys: readonly string[];
  readonly clients: readonly string[];
  readonly channels: readonly string[];
}

/** What keeps a process alive after it has closed its application. */
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
