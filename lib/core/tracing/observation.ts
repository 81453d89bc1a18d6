import { type Holders, labelWithTrace } from '../api/holder.js';
import type { LockError } from '../api/errors.js';
import type { ResolvedLockOptions, WaitFollower } from '../api/lock-options.js';
import { LEADER_PREFIX } from '../api/resource.js';
import type {
  CallTrace,
  LockTracer,
  RenewalTrace,
  RunTrace,
  TracedGrant,
  TracedLock,
  TracedRun,
} from '../events/lock-tracer.js';
import type { LockObservers } from '../events/observers.js';
import { type AsyncContext, inRootContext } from '../util/async-contexts.js';
import type { Clock } from '../util/clock.js';
import type { AcquireEntry, HoldOutcome, LockReleaseTrace, LockTickTrace } from './contexts.js';
import { follow, FollowedHold, type Followers, guard, type Guarded, made, tell } from './followers.js';
import {
  ACQUIRE_CHANNEL,
  HOLD_CHANNEL,
  PublishedCall,
  PublishedHold,
  PublishedRelease,
  PublishedRenewal,
  PublishedTick,
  RELEASE_CHANNEL,
  RENEW_CHANNEL,
  TICK_CHANNEL,
} from './publications.js';

interface Granted {
  readonly waitedMs: number;
  readonly attempts: number;
  readonly storeLease: { readonly isHandedOn: boolean };
}

/** What holds a lock. */
type ObservedHolder = Parameters<LockObservers['describe']>[0] & { readonly followed?: FollowedHold | undefined };

/** A hold. What follows it is found there. */
interface ObservedHold extends ObservedHolder {
  readonly options: ObservedHolder['options'] & Pick<ResolvedLockOptions, 'followed'>;
  readonly acquiredAt: number;
  readonly endedAt: number;
  readonly context: AsyncContext | undefined;
  followed?: FollowedHold | undefined;
  releasing?: PublishedRelease;
}

type CallFollower = CallTrace & Partial<Pick<PublishedCall, 'acquired'>>;

/**
 * What follows the locks of one service: tracers, which make spans, and the diagnostics channels of this process. Calls,
 * holds, renewals and runs that nothing follows cost a look at their channel, and nothing is made for them.
 */
export class Observation {
  #tracers: Followers<LockTracer> = [];
  /** Whether one of them can record. */
  #isOn = false;
  #tracesRenewals = false;

  constructor(
    private readonly observers: LockObservers,
    private readonly clock: Clock,
  ) {}

  /** @returns a function that removes it. What it follows by then, it follows to the end */
  addTracer(tracer: LockTracer, failed: (error: unknown) => void): () => void {
    const added = { each: tracer, failed };
    this.#setTracers([...this.#tracers, added]);
    return () => this.#setTracers(this.#tracers.filter((other) => other !== added));
  }

  #setTracers(tracers: Followers<LockTracer>): void {
    this.#tracers = tracers;
    this.#isOn = false;
    this.#tracesRenewals = tracers.some(({ each, failed }) => guard(failed, () => each.followsRenewals === true));
  }

  /** Whether a tracer makes spans. */
  get hasTracer(): boolean {
    if (this.#tracers.length === 0) return false;
    return (this.#isOn ||= this.#tracers.some(({ each, failed }) => guard(failed, () => each.isOff?.() !== true)));
  }

  /** Ask before {@link call}. */
  get followsCalls(): boolean {
    return ACQUIRE_CHANNEL.hasSubscribers || this.hasTracer;
  }

  /** @param from the trace of the process that has transferred the lease */
  call<L extends { readonly fencingToken: number }>(
    resource: string,
    given: ResolvedLockOptions,
    entry: AcquireEntry,
    work: (options: ResolvedLockOptions) => Promise<L>,
    from?: string,
  ): Promise<L> {
    const lock = this.observers.describeCall(resource, given);
    const call = new FollowedCall(this.clock, this.#callFollowers(lock, entry, from));
    const { followers, traceparent } = call;
    const label = traceparent !== undefined && { label: labelWithTrace(given.label, lock.group, traceparent) };
    const options = { ...given, followed: call, ...label };
    return follow(
      followers,
      () => work(options),
      (each, { fencingToken }) => each.acquired?.(fencingToken, call.waitedMs()),
      (each, error) => each.failed(error, call.waitedMs()),
    );
  }

  #callFollowers(lock: TracedLock, entry: AcquireEntry, from: string | undefined): Followers<CallFollower> {
    const followers: Guarded<CallFollower>[] = [];
    if (this.hasTracer && isTraced(lock.resource, entry)) {
      followers.push(
        ...made(this.#tracers, (each) => (entry === 'adoption' ? each.adopt(lock, from) : each.acquire(lock))),
      );
    }
    if (ACQUIRE_CHANNEL.hasSubscribers) followers.push(unguarded(new PublishedCall(lock, entry)));
    return followers;
  }

  /** A hold begins, in the async context of the call that acquired it. */
  granted(hold: ObservedHold, grant: Granted): void {
    if (hold.options.followed !== undefined || HOLD_CHANNEL.hasSubscribers) {
      inContextOf(hold, this.#granted, this, hold, grant);
    }
  }

  #granted(hold: ObservedHold, grant: Granted): void {
    const { followed: call } = hold.options;
    const { waitedMs, attempts, storeLease } = grant;
    const handedOn = storeLease.isHandedOn;
    const granted = { fencingToken: hold.fencingToken, waitedMs, attempts, handedOn };
    const traces = call instanceof FollowedCall ? made(call.followers, (each) => each.granted(granted)) : [];
    const isPublished = HOLD_CHANNEL.hasSubscribers;
    if (traces.length === 0 && !isPublished) return;
    const published = isPublished ? new PublishedHold(this.observers.describe(hold), waitedMs, handedOn) : undefined;
    hold.followed = new FollowedHold(traces, published);
  }

  /**
   * A hold has ended: in the async context of the call that released it, or for a loss in that of the call that
   * acquired it. What comes later changes nothing.
   */
  ended(hold: ObservedHold, outcome: HoldOutcome, error?: LockError): void {
    const { followed } = hold;
    if (followed === undefined) return;
    hold.followed = undefined;
    const heldMs = Math.max(0, Math.min(hold.endedAt, this.clock.now()) - hold.acquiredAt);
    const end = { outcome, heldMs, error };
    if (outcome === 'lost') inContextOf(hold, followed.ended, followed, end);
    else followed.ended(end);
  }

  /** No code refers to the lease any longer. A span of it would never be exported; the hold goes on. */
  leaked(hold: ObservedHold, heldMs: number): void {
    const { followed } = hold;
    if (followed === undefined) return;
    hold.followed = followed.published && new FollowedHold([], followed.published);
    tell(followed.traces, (each) => each.ended({ outcome: 'leaked', heldMs, error: undefined }));
  }

  /**
   * Runs the work below the hold of a lease; of several, the last one that was granted. Work that comes later, under a
   * lease that a transaction keeps, stays in the context of its caller.
   */
  runUnder<T>(holds: readonly ObservedHolder[], work: () => T): T {
    for (const { followed } of holds.toReversed()) {
      if (followed && followed.traces.length > 0 && !followed.hasRun) return followed.run(work);
    }
    return work();
  }

  /** Ask before {@link renewal}. */
  get followsRenewals(): boolean {
    return RENEW_CHANNEL.hasSubscribers || this.#tracesRenewals;
  }

  /** Follows one renewal. @param work resolves to whether this process still has the lock */
  renewal(holder: ObservedHolder, by: 'watchdog' | 'extend', work: () => Promise<boolean>): Promise<boolean> {
    const followed = (): Promise<boolean> =>
      follow(
        this.#renewalFollowers(holder, by),
        work,
        (each, isOwner) => each.ended(isOwner ? 'renewed' : 'lost', undefined),
        (each, error) => each.ended('failed', error),
      );
    // The watchdog belongs to no call.
    return by === 'watchdog' ? inRootContext(followed) : followed();
  }

  #renewalFollowers(holder: ObservedHolder, by: 'watchdog' | 'extend'): Followers<RenewalTrace> {
    const followers: Guarded<RenewalTrace>[] = [];
    if (RENEW_CHANNEL.hasSubscribers) {
      followers.push(unguarded(new PublishedRenewal(this.observers.describe(holder), by)));
    }
    if (this.#tracesRenewals) followers.push(...made(holder.followed?.traces ?? [], (each) => each.renews?.(by)));
    return followers;
  }

  /** Ask before {@link release}. */
  get followsReleases(): boolean {
    return RELEASE_CHANNEL.hasSubscribers;
  }

  /** Follows a release. That of the last lease finds `releasing` of the hold, to say what it finds out. */
  release(hold: ObservedHold, entry: LockReleaseTrace['entry'], work: () => Promise<void>): Promise<void> {
    const release = new PublishedRelease(this.observers.describe(hold), entry);
    if (entry === 'call') hold.releasing = release;
    return published(release, work);
  }

  /** Follows one tick of a job. @param work is told what to say what becomes of it, if anything hears of that */
  tick<T>(
    described: Pick<LockTickTrace, 'service' | 'group' | 'job' | 'tick'>,
    work: (tick: PublishedTick) => Promise<T>,
  ): Promise<T> {
    const tick = new PublishedTick(described);
    return published(tick, () => work(tick));
  }

  /** Ask before {@link tick}. */
  get followsTicks(): boolean {
    return TICK_CHANNEL.hasSubscribers;
  }

  /** Runs a job that was granted, and follows the run. */
  run<T>(lock: TracedLock, run: TracedRun, work: (followers: Followers<RunTrace>) => Promise<T>): Promise<T> {
    const followers = made(this.#tracers, (each) => each.tick(lock, run));
    return follow(
      followers,
      () => work(followers),
      (each) => each.ended(undefined),
      (each, error) => each.ended(error),
    );
  }

  /** The lock of a job is held. */
  runHeld(followers: Followers<RunTrace>, hold: ObservedHold, grant: TracedGrant): void {
    const traces = made(followers, (each) => each.held(grant));
    if (traces.length > 0) hold.followed = new FollowedHold(traces, hold.followed?.published);
  }
}

/** A call that is followed, by what its options say. */
class FollowedCall implements WaitFollower {
  readonly #startedAt: number;

  constructor(
    private readonly clock: Clock,
    readonly followers: Followers<CallFollower>,
  ) {
    this.#startedAt = clock.now();
  }

  get traceparent(): string | undefined {
    return made(this.followers, ({ traceparent }) => traceparent).find(({ each }) => typeof each === 'string')?.each;
  }

  waitedMs(now = this.clock.now()): number {
    return Math.max(0, now - this.#startedAt);
  }

  waits(holders: (now: number) => Holders, now = this.clock.now()): void {
    const seen = holders(now);
    tell(this.followers, (each) => each.waits(seen.holders, this.waitedMs(now)));
  }
}

/** A subscriber that throws breaks nothing: Node reports its error. */
function unguarded<T>(each: T): Guarded<T> {
  return { each, failed() {} };
}

function published<T>(publication: PublishedRelease | PublishedTick, work: () => Promise<T>): Promise<T> {
  return follow(
    [unguarded(publication)],
    work,
    (each) => each.ended(),
    (each, error) => each.failed(error),
  );
}

/** A run of a job is followed as a whole. A leadership lasts for days, and its candidates wait for as long. */
function isTraced(resource: string, entry: AcquireEntry): boolean {
  return (entry === 'call' || entry === 'adoption') && !resource.startsWith(LEADER_PREFIX);
}

function inContextOf<This, Args extends unknown[]>(
  { context }: ObservedHold,
  told: (this: This, ...args: Args) => void,
  on: This,
  ...args: Args
): void {
  if (context) context.runInAsyncScope(told, on, ...args);
  else inRootContext(told, on, ...args);
}
