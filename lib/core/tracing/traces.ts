import type { LockError } from '../api/errors.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import { LeaseLostError } from '../api/lease-errors.js';
import { type AsyncContext, inRootContext } from '../util/async-contexts.js';
import type { Clock } from '../util/clock.js';
import { ACQUIRE_CHANNEL, frozenContext, HOLD_CHANNEL, publishEnd, publishStart, traceOperation } from './channels.js';
import type { AcquireEntry, HoldOutcome, LockAcquireTrace, LockHoldTrace, LockTrace } from './contexts.js';
import { outcomeOfError } from './outcomes.js';

type Later<Trace, Now extends keyof Trace> = { -readonly [Name in keyof Omit<Trace, Now>]: Trace[Name] };

/** What is found out about a call to acquire. */
interface PendingAcquire {
  readonly startedAt: number;
  readonly later: Later<LockAcquireTrace, keyof LockTrace | 'entry'>;
}

/** What is found out about a hold. */
interface OpenHold {
  readonly context: LockHoldTrace;
  readonly later: Later<LockHoldTrace, keyof LockTrace | 'fencingToken' | 'waitedMs'>;
}

/** What a trace says of a grant. */
interface TracedGrant {
  readonly waitedMs: number;
  readonly attempts: number;
}

/** What a trace says of a hold. */
interface TracedHold {
  readonly owner: { readonly resource: string };
  readonly mode: LockTrace['mode'];
  readonly fencingToken: number;
  readonly acquiredAt: number;
  readonly endedAt: number;
  readonly context: AsyncContext | undefined;
}

/**
 * Publishes what the locks of one service do, on the diagnostics channels of this process. Nothing is made for a
 * channel without subscribers: what a traced call needs is found by objects that every call has.
 */
export class Traces {
  /** By the options that a traced call was given a copy of. */
  readonly #acquires = new WeakMap<ResolvedLockOptions, PendingAcquire>();
  readonly #holds = new WeakMap<object, OpenHold>();

  /** @param service the name of the lock service */
  constructor(
    private readonly service: string,
    private readonly clock: Clock,
  ) {}

  /** Whether calls to acquire are traced. Others cost nothing: ask before {@link acquire} and {@link waits}. */
  get wantsAcquires(): boolean {
    return ACQUIRE_CHANNEL.hasSubscribers;
  }

  /** Ask before {@link holds} and {@link ended}. */
  get wantsHolds(): boolean {
    return HOLD_CHANNEL.hasSubscribers;
  }

  /**
   * Traces one call for one resource.
   *
   * @param work the call, with options that it is known by from now on
   */
  acquire<L extends { readonly fencingToken: number }>(
    resource: string,
    given: ResolvedLockOptions,
    entry: AcquireEntry,
    work: (options: ResolvedLockOptions) => Promise<L>,
  ): Promise<L> {
    const { service, clock } = this;
    const options = { ...given };
    const startedAt = clock.now();
    const later: PendingAcquire['later'] = {
      queuedAfterMs: undefined,
      waitedMs: undefined,
      attempts: undefined,
      fencingToken: undefined,
      outcome: undefined,
      error: undefined,
    };
    this.#acquires.set(options, { startedAt, later });
    const context: LockAcquireTrace = frozenContext({ service, resource, mode: options.mode, entry }, later);
    return traceOperation(
      ACQUIRE_CHANNEL,
      context,
      () => work(options),
      (result) => {
        later.waitedMs ??= clock.now() - startedAt;
        if ('value' in result) {
          later.outcome = 'acquired';
          later.attempts ??= 0;
          later.fencingToken = result.value.fencingToken;
        } else {
          later.outcome = outcomeOfError(result.error);
          later.attempts ??= (result.error as { attempts?: number } | undefined)?.attempts;
          later.error = result.error;
        }
      },
    );
  }

  /** The call with these options begins to wait: for another call of this process, or for another process. */
  waits(options: ResolvedLockOptions, now = this.clock.now()): void {
    const acquire = this.#acquires.get(options);
    if (acquire) acquire.later.queuedAfterMs ??= Math.max(0, now - acquire.startedAt);
  }

  /** The call with these options was granted its lock. */
  granted(options: ResolvedLockOptions, { waitedMs, attempts }: TracedGrant): void {
    const acquire = this.#acquires.get(options);
    if (acquire) Object.assign(acquire.later, { waitedMs, attempts });
  }

  /** A hold begins, in the async context of the call that acquired it. */
  holds(hold: TracedHold, { waitedMs }: TracedGrant): void {
    const { service } = this;
    const { owner, mode, fencingToken } = hold;
    const later: OpenHold['later'] = { heldMs: undefined, outcome: undefined, reason: undefined, error: undefined };
    const now = { service, resource: owner.resource, mode, fencingToken, waitedMs };
    const context: LockHoldTrace = frozenContext(now, later);
    this.#holds.set(hold, { context, later });
    inContextOf(hold, () => publishStart(HOLD_CHANNEL, context));
  }

  /**
   * A hold has ended: in the async context of the call that released it, or for a loss in that of the call that
   * acquired it.
   */
  ended(hold: TracedHold, outcome: HoldOutcome, error?: LockError): void {
    const open = this.#holds.get(hold);
    if (!open || open.later.outcome) return;
    const { context, later } = open;
    const endedAt = Math.min(hold.endedAt, this.clock.now());
    later.heldMs = Math.max(0, endedAt - hold.acquiredAt);
    later.outcome = outcome;
    later.error = error;
    if (error instanceof LeaseLostError) later.reason = error.reason;
    const publish = (): void => publishEnd(HOLD_CHANNEL, context, error !== undefined);
    if (outcome === 'lost') inContextOf(hold, publish);
    else publish();
  }
}

function inContextOf({ context }: TracedHold, publish: () => void): void {
  if (context) context.runInAsyncScope(publish);
  else inRootContext(publish);
}
