import type { Timer } from '../../../kernel/util/clock.js';
import { LockShutdownError } from '../../../kernel/api/errors.js';
import { LeaseLostError, LockReentryError } from '../../../kernel/api/lease-errors.js';
import type { SingleLease } from '../../../kernel/lease/single-lease.js';
import type { KernelParts } from '../../../kernel/lease/kernel-parts.js';
import type { LeaseFactory } from '../../../kernel/lease/lease-factory.js';
import { checkWork, refuseUnfinished, unfinishedWork } from '../../../kernel/api/work.js';
import type { JobStore } from './job-store.js';
import { createOwnerId } from '../../../kernel/store/ask.js';
import { pause } from '../../../kernel/util/promises.js';
import type { LockEventOf } from '../../../kernel/events/events.js';
import { defined } from '../../../kernel/util/objects.js';
import { quote } from '../../../kernel/util/quoted.js';
import type { RunTrace } from '../../../kernel/events/lock-tracer.js';
import type { Followers } from '../../../kernel/tracing/followers.js';
import { StoreLease, validUntil } from '../../../kernel/holding/store-lease.js';
import { describeTick, type TickAttempt, TickClaims } from './tick-claims.js';
import {
  resolveSingletonRun,
  type RunPlan,
  SINGLETON_RUN_OPTIONS,
  type SingletonRunOptions,
  type SingletonWork,
} from './singleton-run-options.js';
import type { ClaimMetadata, TickClaim, TickReply } from './job-claims.js';
import { LockBusyError } from '../../../kernel/api/busy-errors.js';

type GrantedTick = Extract<TickReply, { status: 'granted' }> & { readonly sentAt: number };

/** Starts each tick of a job on one instance of the fleet. */
export class SingletonRuns {
  readonly #claims: TickClaims;

  constructor(
    private readonly deps: KernelParts,
    private readonly leases: LeaseFactory,
    readonly jobs: JobStore,
  ) {
    this.#claims = new TickClaims(deps, jobs);
  }

  /** Runs the work if this instance gets the tick; otherwise resolves to `undefined`. Its errors pass through. */
  async run<T>(options: SingletonRunOptions, work: SingletonWork<T>, plan: RunPlan = {}): Promise<T | undefined> {
    checkWork(work, 'runSingleton');
    const resolved = resolveSingletonRun(options, this.deps.defaults);
    const { resource } = resolved.target;
    const { jitterMs = 0 } = options;
    const closing = this.deps.shutdownSignal();
    // The claims of the fleet come at random moments: which instance gets the tick is left to chance.
    if (jitterMs > 0) await pause(this.deps.clock, jitterMs * this.deps.random.fraction(), closing);
    const attempt: TickAttempt = {
      ...resolved,
      owner: { resource, id: createOwnerId(this.deps.store.clientId, this.deps.random), mode: 'exclusive' },
      startedAt: this.deps.clock.now(),
      closing,
      plan,
      note: this.#noteOf(options, plan),
      hasBegun: false,
    };
    return this.#run(attempt, work);
  }

  #noteOf(options: SingletonRunOptions, plan: RunPlan): ClaimMetadata | undefined {
    if (this.jobs.refusal !== undefined) return undefined;
    const { schedule, previous, next, isDate } = plan;
    const { historySize = SINGLETON_RUN_OPTIONS.defaults.historySize, manual = false } = options;
    const kind = manual ? 'manual' : (plan.kind ?? 'tick');
    return { kind, historySize, schedule, previous, next, isDate };
  }

  async #run<T>(attempt: TickAttempt, work: SingletonWork<T>): Promise<T | undefined> {
    const { options } = attempt;
    const { resource } = attempt.target;
    let claimed = await (attempt.due ? this.#claims.inTurn(attempt) : this.#claims.claim(attempt, 'nothing'));
    while (claimed) {
      const { reply, sentAt } = claimed;
      let takeOver: TickClaim['takeOver'] = 'nothing';
      if (reply.status === 'granted') {
        const ran = await this.#start(attempt, { ...reply, sentAt }, work);
        if (ran) return ran.result;
        // The event loop was blocked since the answer. The claim is still its own.
        if (attempt.closing.aborted) this.#claims.forget(attempt);
      } else {
        if (reply.status !== 'claimed' && !(reply.status === 'taken' && standsBy(options, reply))) {
          if (options.manual && reply.status === 'overlap') throw refusalOf(options, resource);
          emitTickSkipped(attempt, reply, this.deps);
          return undefined;
        }
        if (this.deps.context.lease(resource)?.isHeld()) {
          throw LockReentryError.waitingForItself(resource, 'exclusive', 'exclusive');
        }
        if ((await pause(this.deps.clock, this.#claims.retryDelayMs(attempt, reply), attempt.closing)) === 'aborted') {
          if (reply.status === 'claimed') this.#claims.forget(attempt);
          break;
        }
        if (reply.status === 'taken') takeOver = options.onCrash === 'retry' ? 'unfinished' : 'unbegun';
      }
      claimed = await this.#claims.claim(attempt, takeOver);
    }
    if (options.manual) throw new LockShutdownError(resource);
    return undefined;
  }

  /** Runs a tick that was granted. Resolves to `undefined` if the lease ended before the work was called. */
  async #start<T>(
    attempt: TickAttempt,
    granted: GrantedTick,
    work: SingletonWork<T>,
  ): Promise<{ readonly result: T | undefined } | undefined> {
    const { clock, observation, observers } = this.deps;
    const { options, owner, lock, plan } = attempt;
    if (clock.now() >= validUntil(granted.sentAt, lock.leaseMs)) return undefined;
    if (granted.isNew) plan.onUnknown?.();
    if (granted.other) plan.onOther?.(granted.other);
    const run = (followed?: Followers<RunTrace>) => this.#runTick(attempt, granted, work, followed);
    const traced = { job: options.job, tick: options.tick, rerun: granted.attempt > 1 };
    try {
      if (!observation.hasTracer) return { result: await run() };
      return { result: await observation.run(observers.describeCall(owner.resource, lock), traced, run) };
    } catch (error) {
      if (attempt.hasBegun || !(error instanceof LeaseLostError)) throw error;
      return undefined;
    }
  }

  async #runTick<T>(
    attempt: TickAttempt,
    { fencingToken, attempt: number, missed, sentAt }: GrantedTick,
    work: SingletonWork<T>,
    followed?: Followers<RunTrace>,
  ): Promise<T | undefined> {
    const { deps, leases } = this;
    const { options, owner, lock, startedAt } = attempt;
    const { job, tick, manual = false } = options;
    // The release of the lock ends the run: `RunEnding` stores both in one command.
    const ending = this.#claims.endingOf(attempt, fencingToken);
    const storeLease = new StoreLease(owner, fencingToken, sentAt, lock, deps.clock, undefined, ending);
    const grant = { storeLease, attempts: 1, waitedMs: deps.clock.now() - startedAt };
    const lease = leases.hold(grant, lock);
    if (followed)
      deps.observation.runHeld(followed, lease.hold, { fencingToken, waitedMs: grant.waitedMs, attempts: 1 });
    const catchUp = attempt.plan.kind === 'catchUp';
    const described = {
      ...describeTick(this.deps.observers, options),
      ...(manual && { manual }),
      ...(catchUp && { catchUp }),
    };
    const which = { rerun: number > 1, attempt: number };
    const at = options.due?.at;
    const run = async (): Promise<T> => {
      attempt.hasBegun = true;
      if (ending) ending.outcome = 'lost';
      const delayMs = deps.clock.wallNow() - (at ?? 0);
      deps.observers.emit({ type: 'tickStarted', ...described, ...which, ...(at !== undefined && { delayMs }) });
      const began = deps.clock.now();
      const cutOff = this.#finishBeforeCutOff(attempt, lease);
      const stopWatching = this.#watchOverlap(attempt, described, began);
      let failed = true;
      let isGivenBack = false;
      try {
        const result = await work(lease, { job, tick, ...which, manual, ...(missed && { missed }), lease });
        const unfinished = unfinishedWork(result);
        if (unfinished) throw refuseUnfinished(result, unfinished, `the job ${quote(job)}`);
        failed = false;
        return result;
      } catch (error) {
        // It counts as a crash, after which another instance reruns the tick. It had no time for its work.
        isGivenBack = options.onCrash === 'retry' && deps.closing.aborted && error instanceof LockShutdownError;
        ending?.failedWith(error);
        throw error;
      } finally {
        const ranMs = deps.clock.now() - began;
        const died = isGivenBack || diedWith(lease);
        const outcome = died ? 'lost' : failed ? 'error' : 'ok';
        if (ending) ending.outcome = outcome;
        cutOff?.cancel();
        stopWatching();
        if (!failed || !died) await this.#claims.finish(attempt, lease);
        deps.observers.emit({ type: 'tickFinished', ...described, ...which, ranMs, outcome });
      }
    };
    // A run whose lease is lost counts as lost. Its job has no caller that could wait for more.
    return leases.runUnder(lease, run, 'ignore');
  }

  /** Reports a run that lasts until `warnAfterMs` after the next tick of its job was due. @returns what stops that */
  #watchOverlap(
    { options, plan: { ticks, warnAfterMs = this.deps.defaults.warnAfterMs } }: TickAttempt,
    described: Omit<LockEventOf<'overlapLong'>, 'type' | 'overlap' | 'ranMs' | 'ticks'>,
    began: number,
  ): () => void {
    const { clock, observers } = this.deps;
    const since = clock.wallNow();
    const next = ticks?.after(since);
    if (next === undefined || warnAfterMs === Infinity || !observers.wants('overlapLong')) return () => {};
    let isOver = false;
    const report = async (): Promise<void> => {
      const { count } = await ticks!.between(since, clock.wallNow(), 1);
      if (isOver) return;
      const ranMs = clock.now() - began;
      observers.emit({ type: 'overlapLong', ...described, overlap: options.overlap, ranMs, ticks: count });
    };
    const timer = clock.setTimer(() => void report(), next - since + warnAfterMs, { background: true });
    return () => {
      isOver = true;
      timer.cancel();
    };
  }

  /**
   * A run that exceeds `maxHoldMs` has not crashed, and is not run again. Its tick is finished while the lock is still
   * held: afterwards another instance could take the tick over first.
   */
  #finishBeforeCutOff(attempt: TickAttempt, lease: SingleLease): Timer | undefined {
    const { options, lock } = attempt;
    if (options.onCrash === 'skip' || lock.maxHoldMs === Infinity) return undefined;
    const delayMs = lock.maxHoldMs - lock.leaseMs / 3;
    return this.deps.clock.setTimer(() => void this.#claims.finish(attempt, lease), delayMs, { background: true });
  }
}

/**
 * Returns true if this instance waits to take the tick over from a runner that dies, or from an instance that never
 * begins the run.
 */
function standsBy({ overlap, onCrash }: SingletonRunOptions, { isBegun }: { isBegun: boolean }): boolean {
  return onCrash === 'retry' || (overlap === 'wait' && !isBegun);
}

/** Returns true if the run failed with its lease lost: that counts as a crash. */
function diedWith({ hold }: SingleLease): boolean {
  return !hold.checkHeld() && !hold.isReleased;
}

/** The error of a manual run that is refused. */
function refusalOf({ job, tick }: SingletonRunOptions, resource: string): LockBusyError {
  const message =
    `The job ${quote(job)} was not run manually (${quote(tick)}): an earlier run has not ended, on this or another ` +
    "instance. Try again when it has, or set overlap: 'wait'.";
  return new LockBusyError(resource, { attempts: 1, retryAfterMs: 0 }, message);
}

/** Reports the reason why a tick does not run on this instance. */
function emitTickSkipped(attempt: TickAttempt, reply: TickReply, { observers, clock }: KernelParts): void {
  const { options, due } = attempt;
  if (!observers.wants('tickSkipped')) return;
  const event = { type: 'tickSkipped', ...describeTick(observers, options) } as const;
  if (reply.status === 'late' || reply.status === 'early') {
    const { status: reason, lateMs } = reply;
    const clockBehindMs = Math.round(lateMs - (clock.wallNow() - due!.at));
    const isClockWrong = Math.abs(clockBehindMs) > due!.earlyMs;
    observers.emit({ ...event, reason, lateMs, ...(isClockWrong && { clockBehindMs }) });
  } else if (reply.status === 'paused') {
    const { by, until, reason: pauseReason } = reply;
    observers.emit({ ...event, reason: 'paused', ...defined({ by, pauseReason, until }) });
  } else if (reply.status === 'otherDate') {
    observers.emit({ ...event, reason: 'otherDate', registered: reply.registered });
  } else if (reply.status === 'crashed') {
    observers.emit({ ...event, reason: 'crashed', attempts: reply.attempts });
  } else {
    observers.emit({ ...event, reason: reply.status === 'overlap' ? 'overlap' : 'claimed' });
  }
}
