import { type Holders, labelWithTrace } from '../api/holder.js';
import type { LockError } from '../api/errors.js';
import type { ResolvedLockOptions, WaitFollower } from '../api/lock-options.js';
import { LEADER_PREFIX } from '../api/resource.js';
import type { CallTrace, LockTracer, RunTrace, TracedGrant, TracedLock, TracedRun } from '../events/lock-tracer.js';
import type { LockObservers } from '../events/observers.js';
import { type AsyncContext, inRootContext } from '../util/async-contexts.js';
import type { Clock } from '../util/clock.js';
import { follow, Traces, type Followers, guard, made, tell } from './followers.js';

/** A hold, as far as tracers need it. */
interface Followable {
  readonly options: Pick<ResolvedLockOptions, 'followed'>;
  readonly fencingToken: number;
  readonly acquiredAt: number;
  readonly endedAt: number | undefined;
  readonly context: AsyncContext | undefined;
  followed?: Traces | undefined;
}

/**
 * The tracers of one service, which make spans. Nothing is made for calls, holds, renewals and runs that none of them
 * follows.
 */
export class Observation {
  #tracers: Followers<LockTracer> = [];
  #isOn = false;
  /** Ask before {@link renewal}. */
  followsRenewals = false;

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
    this.followsRenewals = tracers.some(({ each, failed }) => guard(failed, () => each.followsRenewals === true));
  }

  get hasTracer(): boolean {
    if (this.#tracers.length === 0) return false;
    return (this.#isOn ||= this.#tracers.some(({ each, failed }) => guard(failed, () => each.isOff?.() !== true)));
  }

  /** Ask before {@link call}. A leadership lasts for days, and its candidates wait for as long. */
  followsCall(resource: string): boolean {
    return this.hasTracer && !resource.startsWith(LEADER_PREFIX);
  }

  call<L>(
    resource: string,
    given: ResolvedLockOptions,
    work: (options: ResolvedLockOptions) => Promise<L>,
  ): Promise<L> {
    const lock = this.observers.describeCall(resource, given);
    const followers = made(this.#tracers, (each) => each.acquire(lock));
    const call = new FollowedCall(this.clock, followers);
    const { traceparent } = call;
    const label = traceparent !== undefined && { label: labelWithTrace(given.label, lock.group, traceparent) };
    const options = { ...given, followed: call, ...label };
    return follow(
      followers,
      () => work(options),
      () => {},
      (each, error) => each.failed(error, call.waitedMs()),
    );
  }

  granted(hold: Followable, grant: Omit<TracedGrant, 'fencingToken'>): void {
    const { followed } = hold.options;
    if (followed instanceof FollowedCall) inContextOf(hold, this.#granted, this, hold, followed, grant);
  }

  #granted(hold: Followable, call: FollowedCall, { waitedMs, attempts }: Omit<TracedGrant, 'fencingToken'>): void {
    const granted = { fencingToken: hold.fencingToken, waitedMs, attempts };
    const traces = made(call.followers, (each) => each.granted(granted));
    if (traces.length > 0) hold.followed = new Traces(traces);
  }

  /**
   * A hold has ended: in the async context of the call that released it, or for a loss in the acquiring call's. Later
   * calls change nothing.
   */
  ended(hold: Followable, outcome: 'released' | 'lost', error?: LockError): void {
    const { followed } = hold;
    if (followed === undefined) return;
    hold.followed = undefined;
    const heldMs = Math.max(0, Math.min(hold.endedAt ?? Infinity, this.clock.now()) - hold.acquiredAt);
    const end = { outcome, heldMs, error };
    if (outcome === 'lost') inContextOf(hold, followed.ended, followed, end);
    else followed.ended(end);
  }

  /** No code refers to the lease any longer. A span of it would never be exported; the hold continues. */
  leaked(hold: Followable, heldMs: number): void {
    const { followed } = hold;
    if (followed === undefined) return;
    hold.followed = undefined;
    followed.ended({ outcome: 'leaked', heldMs, error: undefined });
  }

  /**
   * Runs the work below the hold of a lease; of several, the last one that was granted. Work that comes later, under a
   * lease that a transaction keeps, stays in the context of its caller.
   */
  runUnder<T>(holds: readonly Pick<Followable, 'followed'>[], work: () => T): T {
    for (const { followed } of holds.toReversed()) {
      if (followed && !followed.hasRun) return followed.run(work);
    }
    return work();
  }

  /** Follows one renewal. @param work resolves to whether this process still has the lock */
  renewal(hold: Traces | undefined, by: 'watchdog' | 'extend', work: () => Promise<boolean>): Promise<boolean> {
    const followed = (): Promise<boolean> =>
      follow(
        made(hold?.traces ?? [], (each) => each.renews?.(by)),
        work,
        (each, isOwner) => each.ended(isOwner ? 'renewed' : 'lost', undefined),
        (each, error) => each.ended('failed', error),
      );
    // The watchdog belongs to no call.
    return by === 'watchdog' ? inRootContext(followed) : followed();
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

  runHeld(followers: Followers<RunTrace>, hold: Followable, grant: TracedGrant): void {
    const traces = made(followers, (each) => each.held(grant));
    if (traces.length > 0) hold.followed = new Traces(traces);
  }
}

class FollowedCall implements WaitFollower {
  readonly #startedAt: number;

  constructor(
    private readonly clock: Clock,
    readonly followers: Followers<CallTrace>,
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

function inContextOf<This, Args extends unknown[]>(
  { context }: Followable,
  told: (this: This, ...args: Args) => void,
  on: This,
  ...args: Args
): void {
  if (context) context.runInAsyncScope(told, on, ...args);
  else inRootContext(told, on, ...args);
}
