import type { LockError } from '../api/errors.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { Holders } from '../api/holder.js';
import { LEADER_PREFIX } from '../api/resource.js';
import { LeaseLostError } from '../api/lease-errors.js';
import type { LockTracer } from '../events/lock-tracer.js';
import type { LockObservers } from '../events/observers.js';
import { type AsyncContext, inRootContext } from '../util/async-contexts.js';
import type { Clock } from '../util/clock.js';
import {
  ACQUIRE_CHANNEL,
  frozenContext,
  HOLD_CHANNEL,
  publishEnd,
  publishStart,
  RELEASE_CHANNEL,
  RENEW_CHANNEL,
  TICK_CHANNEL,
  traceOperation,
} from './channels.js';
import type {
  AcquireEntry,
  HoldOutcome,
  LockAcquireTrace,
  LockHoldTrace,
  LockReleaseTrace,
  LockRenewTrace,
  LockTickTrace,
  LockTrace,
} from './contexts.js';
import { FollowedLocks } from './followed-locks.js';
import { outcomeOfError } from '../events/outcomes.js';

type Later<Trace, Now extends keyof Trace> = { -readonly [Name in keyof Omit<Trace, Now>]: Trace[Name] };

/** What is found out about a call to acquire. */
interface PendingAcquire {
  readonly startedAt: number;
  readonly later: Later<LockAcquireTrace, keyof LockTrace | 'entry'>;
}

/** What is found out about a hold. */
interface OpenHold {
  readonly context: LockHoldTrace;
  readonly later: Later<LockHoldTrace, keyof LockTrace | 'fencingToken' | 'waitedMs' | 'handedOn'>;
}

type PendingRelease = Later<LockReleaseTrace, keyof LockTrace | 'entry' | 'fencingToken'>;
type PendingTick = Later<LockTickTrace, 'service' | 'group' | 'job' | 'tick'>;

/** What a trace says of a grant. */
interface TracedGrant {
  readonly waitedMs: number;
  readonly attempts: number;
  readonly storeLease: { readonly isHandedOn: boolean };
}

/** What holds a lock, as a trace describes it. */
type TracedHolder = Parameters<LockObservers['describe']>[0];

/** What a trace says of a hold. */
interface TracedHold extends TracedHolder {
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
  /** By hold. */
  readonly #releases = new WeakMap<object, PendingRelease>();
  /** By the attempt to run the tick. */
  readonly #ticks = new WeakMap<object, PendingTick>();
  /** What tracers follow, to make spans of it. */
  readonly followed = new FollowedLocks();
  #hadTracer = false;

  constructor(
    private readonly observers: LockObservers,
    private readonly clock: Clock,
  ) {}

  /** Whether a tracer makes spans. Ask before you call {@link followed}. */
  get hasTracer(): boolean {
    return this.#hadTracer && !this.followed.isEmpty;
  }

  /** @param failed told of its errors @returns a function that removes it */
  addTracer(tracer: LockTracer, failed: (error: unknown) => void): () => void {
    this.#hadTracer = true;
    return this.followed.add(tracer, failed);
  }

  /** Whether calls to acquire are traced. Others cost nothing: ask before {@link acquire} and {@link waits}. */
  get wantsAcquires(): boolean {
    return ACQUIRE_CHANNEL.hasSubscribers || this.hasTracer;
  }

  /** Ask before {@link holds} and {@link ended}. */
  get wantsHolds(): boolean {
    return HOLD_CHANNEL.hasSubscribers || this.hasTracer;
  }

  /**
   * Traces one call for one resource.
   *
   * @param work the call, with options that it is known by from now on
   * @param from the trace of the process that has transferred the lease
   */
  acquire<L extends { readonly fencingToken: number }>(
    resource: string,
    given: ResolvedLockOptions,
    entry: AcquireEntry,
    work: (options: ResolvedLockOptions) => Promise<L>,
    from?: string,
  ): Promise<L> {
    const { clock, followed, observers } = this;
    const options = { ...given };
    const startedAt = clock.now();
    const publish = (): Promise<L> => this.#publish(resource, options, entry, startedAt, work);
    if (!this.hasTracer || !isFollowed(resource, entry)) return publish();
    const call = { lock: observers.describeCall(resource, given), options, startedAt, now: () => clock.now() };
    return entry === 'adoption' ? followed.adopt(call, from, publish) : followed.acquire(call, publish);
  }

  #publish<L extends { readonly fencingToken: number }>(
    resource: string,
    options: ResolvedLockOptions,
    entry: AcquireEntry,
    startedAt: number,
    work: (options: ResolvedLockOptions) => Promise<L>,
  ): Promise<L> {
    if (!ACQUIRE_CHANNEL.hasSubscribers) return work(options);
    const { clock, observers } = this;
    const later: PendingAcquire['later'] = {
      queuedAfterMs: undefined,
      waitedMs: undefined,
      attempts: undefined,
      handedOn: undefined,
      fencingToken: undefined,
      outcome: undefined,
      error: undefined,
    };
    this.#acquires.set(options, { startedAt, later });
    const context: LockAcquireTrace = frozenContext({ ...observers.describeCall(resource, options), entry }, later);
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
  waits(options: ResolvedLockOptions, holders: (now: number) => Holders, now = this.clock.now()): void {
    this.followed.waits(options, now, () => holders(now).holders);
    const acquire = this.#acquires.get(options);
    if (acquire) acquire.later.queuedAfterMs ??= Math.max(0, now - acquire.startedAt);
  }

  /** The call with these options was granted its lock. */
  granted(options: ResolvedLockOptions, hold: TracedHold, { waitedMs, attempts, storeLease }: TracedGrant): void {
    this.followed.granted(options, hold, { fencingToken: hold.fencingToken, waitedMs, attempts });
    const acquire = this.#acquires.get(options);
    if (acquire) Object.assign(acquire.later, { waitedMs, attempts, handedOn: storeLease.isHandedOn });
  }

  /** A hold begins, in the async context of the call that acquired it. */
  holds(hold: TracedHold, { waitedMs, storeLease }: TracedGrant): void {
    if (!HOLD_CHANNEL.hasSubscribers) return;
    const later: OpenHold['later'] = { heldMs: undefined, outcome: undefined, reason: undefined, error: undefined };
    const now = { ...this.observers.describe(hold), waitedMs, handedOn: storeLease.isHandedOn };
    const context: LockHoldTrace = frozenContext(now, later);
    this.#holds.set(hold, { context, later });
    inContextOf(hold, () => publishStart(HOLD_CHANNEL, context));
  }

  /**
   * A hold has ended: in the async context of the call that released it, or for a loss in that of the call that
   * acquired it.
   */
  ended(hold: TracedHold, outcome: HoldOutcome, error?: LockError): void {
    const heldMs = Math.max(0, Math.min(hold.endedAt, this.clock.now()) - hold.acquiredAt);
    this.followed.ended(hold, { outcome, heldMs, error });
    const open = this.#holds.get(hold);
    if (!open || open.later.outcome) return;
    const { context, later } = open;
    later.heldMs = heldMs;
    later.outcome = outcome;
    later.error = error;
    if (error instanceof LeaseLostError) later.reason = error.reason;
    const publish = (): void => publishEnd(HOLD_CHANNEL, context, error !== undefined);
    if (outcome === 'lost') inContextOf(hold, publish);
    else publish();
  }

  /** Ask before {@link renewal}. */
  get wantsRenewals(): boolean {
    return RENEW_CHANNEL.hasSubscribers || this.followed.wantsRenewals;
  }

  /** Traces one renewal. @param work resolves to whether this process still has the lock */
  renewal(holder: TracedHolder, entry: LockRenewTrace['entry'], work: () => Promise<boolean>): Promise<boolean> {
    const followed = (): Promise<boolean> => this.followed.renewal(holder, entry, work);
    const trace = this.followed.wantsRenewals ? followed : work;
    const publish = RENEW_CHANNEL.hasSubscribers
      ? (): Promise<boolean> => this.#publishRenewal(holder, entry, trace)
      : trace;
    // The watchdog belongs to no call.
    return entry === 'watchdog' ? inRootContext(publish) : publish();
  }

  #publishRenewal(
    holder: TracedHolder,
    entry: LockRenewTrace['entry'],
    work: () => Promise<boolean>,
  ): Promise<boolean> {
    const later: Later<LockRenewTrace, keyof LockTrace | 'entry' | 'fencingToken'> = {
      outcome: undefined,
      error: undefined,
    };
    const context: LockRenewTrace = frozenContext({ ...this.observers.describe(holder), entry }, later);
    return traceOperation(RENEW_CHANNEL, context, work, (result) => {
      if ('value' in result) later.outcome = result.value ? 'renewed' : 'lost';
      else Object.assign(later, { outcome: 'failed', error: result.error });
    });
  }

  /** Ask before {@link release} and {@link released}. */
  get wantsReleases(): boolean {
    return RELEASE_CHANNEL.hasSubscribers;
  }

  /** Traces a release. {@link released} says what it finds out. */
  release(hold: TracedHolder, entry: LockReleaseTrace['entry'], work: () => Promise<void>): Promise<void> {
    const later: PendingRelease = { inMemory: undefined, outcome: undefined, error: undefined };
    if (entry === 'call') this.#releases.set(hold, later);
    const context: LockReleaseTrace = frozenContext({ ...this.observers.describe(hold), entry }, later);
    return traceOperation(RELEASE_CHANNEL, context, work, (result) => {
      if ('error' in result) Object.assign(later, { outcome: 'failed', error: result.error });
      later.outcome ??= 'released';
      later.inMemory ??= false;
    });
  }

  /** What is known first counts. */
  released(hold: TracedHolder, outcome: LockReleaseTrace['outcome'], inMemory = false): void {
    const later = this.#releases.get(hold);
    if (later && later.outcome === undefined) Object.assign(later, { outcome, inMemory });
  }

  /** Ask before {@link tick} and {@link tickIs}. */
  get wantsTicks(): boolean {
    return TICK_CHANNEL.hasSubscribers;
  }

  /**
   * Traces one tick of a job. {@link tickIs} says what becomes of it.
   *
   * @param attempt what this tick is known by
   */
  tick<T>(
    attempt: object,
    described: Pick<LockTickTrace, 'service' | 'group' | 'job' | 'tick'>,
    work: () => Promise<T>,
  ): Promise<T> {
    const later: PendingTick = {
      fencingToken: undefined,
      rerun: undefined,
      ranMs: undefined,
      reason: undefined,
      outcome: undefined,
      error: undefined,
    };
    this.#ticks.set(attempt, later);
    const context: LockTickTrace = frozenContext(described, later);
    return traceOperation(TICK_CHANNEL, context, work, (result) => {
      later.outcome ??= 'failed';
      if ('error' in result) later.error = result.error;
    });
  }

  tickIs(attempt: object, known: Partial<PendingTick>): void {
    Object.assign(this.#ticks.get(attempt) ?? {}, known);
  }
}

/** A run of a job is followed as a whole. A leadership lasts for days, and its candidates wait for as long. */
function isFollowed(resource: string, entry: AcquireEntry): boolean {
  return (entry === 'call' || entry === 'adoption') && !resource.startsWith(LEADER_PREFIX);
}

function inContextOf({ context }: TracedHold, publish: () => void): void {
  if (context) context.runInAsyncScope(publish);
  else inRootContext(publish);
}
