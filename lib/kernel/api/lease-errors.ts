import { LockError, quoteResource } from './errors.js';
import { formatDuration } from '../util/durations.js';
import { brand } from '../util/objects.js';
import { quote, quoteSome } from '../util/quoted.js';
import { LEADER_PREFIX } from './resource.js';

/** Why a lease ended before it was released. */
export type LeaseLossReason =
  /** A fixed lease (`watchdog: false`) has expired. */
  | 'expired'
  /** Redis no longer has this lease: the lock is free, or another holder has it. */
  | 'takenOver'
  /** No renewal was confirmed before the deadline: Redis didn't answer, or this process was blocked. */
  | 'notRenewed'
  /** The lease reached its `maxHoldMs`. */
  | 'maxHold'
  /** The application shut down, and the work didn't end within `drainMs`. */
  | 'shutdown'
  /** Not lost: the lease was used after its release. */
  | 'released';

const LOSS_EXPLAINED: Record<LeaseLossReason, string> = {
  expired: 'it was a fixed lease (watchdog: false) and has expired. Raise leaseMs, or remove watchdog: false',
  takenOver:
    'Redis no longer has this lease, because it was ended by forceRelease(), deleted, evicted, or lost in a restart or a failover',
  notRenewed:
    'no renewal was confirmed before its deadline. Redis did not answer, or the event loop was blocked for longer than leaseMs',
  maxHold: 'it was held for maxHoldMs. Raise maxHoldMs, or do less under one lock',
  shutdown: 'the application is shutting down and the work did not end within shutdown.drainMs',
  released: 'it was already released. Do all work that needs it before release()',
};

/** For a leaked lease that the module no longer renews. */
export const LEAKED =
  "it was not released and no code references it any longer, so it was no longer renewed (onLeak: 'expire'). " +
  'Release it in a finally, or use using()';

/** Facts about a lease that was not renewed in time. Times in milliseconds. */
interface NotRenewedFacts {
  /** The longest time for which the event loop was blocked since the last confirmed renewal. */
  readonly blockedMs?: number;
  /** The time for which Redis has not confirmed a renewal that was sent. */
  readonly unansweredMs?: number | undefined;
  /** The reason why the last renewal failed. */
  readonly failure?: string | undefined;
}

/**
 * Explains why a lease was not renewed. A blocked event loop counts from a quarter of the lease on: the timer that
 * measures it is due after a third, and the last renewal before it may have been under way.
 */
export function explainNotRenewed(leaseMs: number, facts: NotRenewedFacts): string {
  const { blockedMs = 0, unansweredMs, failure } = facts;
  const lease = `leaseMs (${Math.round(leaseMs)})`;
  if (blockedMs >= leaseMs / 4) {
    return (
      `no renewal was confirmed before its deadline, because the event loop was blocked for at least ` +
      `${formatDuration(blockedMs)}. Keep synchronous work short, give the process more CPU, or raise ` +
      lease
    );
  }
  if (unansweredMs === undefined) return LOSS_EXPLAINED.notRenewed;
  const silence = failure
    ? `Redis confirmed no renewal for ${formatDuration(unansweredMs)} (${failure})`
    : `Redis did not answer for ${formatDuration(unansweredMs)}`;
  return `${silence}. Raise ${lease} if leases have to outlive such an outage`;
}

/**
 * The lease ended before the work did, so another holder may have had the resource at the same time. Work that had not
 * begun isn't called.
 *
 * @remedy Stop writing, and check what the work has done before you repeat it. If a blocked event loop was the cause,
 *   raise `leaseMs`.
 */
export class LeaseLostError extends LockError {
  override readonly code = 'LEASE_LOST';
  /** `true` if the work finished despite the loss. Its effects remain, and {@link value} is its result. */
  readonly workFinished: boolean = false;
  /** The result of work that has finished; otherwise `undefined`. Not enumerable, so that it does not get into logs. */
  declare readonly value?: unknown;

  /**
   * @internal
   * @returns the error of work that has finished with `value` under a lease that was lost before
   */
  static afterWork(loss: LeaseLostError, value: unknown): LeaseLostError {
    const { resource, reason, fencingToken, group } = loss;
    const error = new LeaseLostError(resource, reason, fencingToken);
    error.message =
      `${loss.message} The work still ran to its end, so another process may have worked at the same time. ` +
      'Check what the work did before you repeat it. The result is in error.value.';
    if (group !== undefined) error.group = group;
    Error.captureStackTrace(error, LeaseLostError.afterWork);
    return Object.defineProperties(error, { workFinished: { value: true }, value: { value } });
  }

  /** @internal */
  constructor(
    resource: string,
    /** The reason why the lease ended. */
    readonly reason: LeaseLossReason,
    /** The fencing token of the lease that ended. */
    readonly fencingToken: number,
    explained = LOSS_EXPLAINED[reason],
  ) {
    super(`The lease of ${quoteResource(resource)} is no longer held: ${explained}.`, resource);
  }
}

/**
 * This async context already holds the resource, and the call would wait for itself: it acquires an exclusive lock
 * again, acquires a write lock under a read lock, needs more permits than are left, or waits until the resource is
 * free. Or the call downgrades a write lock that an outer call still needs.
 *
 * @remedy Use `mode: 'reentrant'` in both calls, or lock only in the outer one. If a call reads first and writes later,
 *   start with `mode: 'write'`.
 */
export class LockReentryError extends LockError {
  override readonly code = 'LOCK_REENTRY';

  /** @internal */
  static waitingForItself(resource: string, held: string, wanted: string): LockReentryError {
    return new LockReentryError(
      `This async context already holds ${quoteResource(resource)} (mode ${held}), so this call (mode ${wanted}) ` +
        `would wait for itself forever. Use mode: 'reentrant' for both, or lock it only in the outer call.`,
      resource,
    );
  }

  /** @internal */
  static waitingUntilFree(resource: string, held: string): LockReentryError {
    return new LockReentryError(
      `This async context itself holds ${quoteResource(resource)} (mode ${held}) and would wait for itself forever. ` +
        `Release it before waitUntilFree().`,
      resource,
    );
  }

  /** @internal */
  static upgrade(resource: string): LockReentryError {
    return new LockReentryError(
      `This async context holds ${quoteResource(resource)} for reading, and cannot write while it reads: two readers ` +
        `that tried would wait for each other forever. Use mode: 'write' from the start and call downgrade() once you ` +
        'only read, or release the read lock first and then read the data again.',
      resource,
    );
  }

  /** @internal */
  static waitingForOwnPermits(resource: string, held: number, wanted: number, total: number): LockReentryError {
    return new LockReentryError(
      `This async context holds ${held} of the ${total} permits of ${quoteResource(resource)} and wants ${wanted} more: it ` +
        `would wait for itself forever. Acquire all permits in the outer call. If the total was raised by another ` +
        `semaphore object, call resize() on this one too.`,
      resource,
    );
  }

  /** @internal */
  static keptByTransaction(resource: string, wanted?: string): LockReentryError {
    return new LockReentryError(
      `The database transaction of this call holds ${quoteResource(resource)} until it ends, so this call ` +
        `${wanted === undefined ? '' : `(mode ${wanted}) `}would wait for itself. Lock it in calls that follow each ` +
        'other, in the same mode, with using() or a decorator. Or lock it outside of the transaction.',
      resource,
    );
  }

  /** @internal */
  static sharedByOthers(resource: string): LockReentryError {
    return new LockReentryError(
      `The lease of ${quoteResource(resource)} was not downgraded: this async context has locked it more than once, and ` +
        `the outer calls still need it. Call downgrade() in the outermost one.`,
      resource,
    );
  }

  /** @internal */
  static foreignRelease(resource: string): LockReentryError {
    return new LockReentryError(
      `${quoteResource(resource)} is held in reentrant mode by another async context; only that context may release it. ` +
        `Nothing was released.`,
      resource,
    );
  }
}

/** The number of held resources that a message names. */
const SHOWN_AT_MOST = 8;

/**
 * The code needs a lock that its async context doesn't hold: the code runs outside of `locks.using()` and of decorated
 * methods, or after the release.
 *
 * @remedy Call the code inside `locks.using()` or a decorated method, and await it there. A lease from `acquire()`
 *   belongs to no async context.
 */
export class LockNotHeldError extends LockError {
  override readonly code = 'LOCK_NOT_HELD';

  /** @internal */
  constructor(
    /** The requested resource; `undefined` for any lock, which leaves the error's `resource` empty. */
    resource: string | undefined,
    /** The resources that the async context holds, the innermost first. */
    readonly held: readonly string[],
  ) {
    const wanted = resource === undefined ? undefined : quoteResource(resource);
    const others = wanted === undefined ? '' : `: it holds ${describeHeld(held)}`;
    super(
      `This async context does not hold ${wanted ?? 'any lock'}${others}. Call this inside locks.using() or a method ` +
        `with a lock decorator, and await it there. A lease from acquire() belongs to no async context.`,
      resource ?? '',
    );
  }
}

function describeHeld(held: readonly string[]): string {
  return held.length === 0 ? 'no lock' : quoteSome(held, SHOWN_AT_MOST);
}

/** The reason why an instance does not lead, if its lease was not lost. */
export type NotLeaderReason =
  /** The instance is a candidate, but has not been elected yet. */
  | 'notElected'
  /** The term was ended with `term.release()`, and the instance campaigns again. */
  | 'released'
  /** The instance has resigned. */
  | 'resigned'
  /** The application is shutting down. */
  | 'shutdown';

const REASON_EXPLAINED: Record<NotLeaderReason, string> = {
  notElected: 'it has not been elected yet. Wait for whenElected(), or skip this work',
  released: 'its term was released. End this work: another instance may lead next',
  resigned: 'it has resigned. End this work: another instance leads next',
  shutdown: 'the application is shutting down. End this work: another instance leads next',
};

/**
 * This instance doesn't lead. A term's `signal` aborts with this error if the instance steps down, and `whenElected()`
 * rejects with it once the campaign has ended. No other instance leads until the work of the term has ended or the
 * lease has expired.
 *
 * @remedy End the work; another instance leads next.
 */
export class NotLeaderError extends LockError {
  override readonly code = 'NOT_LEADER';

  /** @internal */
  constructor(
    /** The name of the leadership. Its lock, the `resource` of this error, is `leader:<name>`. */
    readonly leadership: string,
    /** The reason why this instance does not lead. */
    readonly reason: NotLeaderReason,
  ) {
    super(`This instance does not lead ${quote(leadership)}: ${REASON_EXPLAINED[reason]}.`, LEADER_PREFIX + leadership);
  }
}

brand({ LeaseLostError, LockReentryError, LockNotHeldError, NotLeaderError });
