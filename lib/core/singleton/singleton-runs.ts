import { askUntil } from '../store/ask.js';
import type { Timer } from '../util/clock.js';
import { LockBusyError, LockError, LockShutdownError, LockUnavailableError } from '../api/errors.js';
import { LockReentryError } from '../api/lease-errors.js';
import type { AlsoLock } from '../holding/foreign-locks.js';
import type { Grant, Hold } from '../holding/hold.js';
import type { SingleLease } from '../lease/single-lease.js';
import type { LeaseDeps } from '../lease/lease-deps.js';
import type { LeaseFactory } from '../lease/lease-factory.js';
import { checkWork } from '../api/validation.js';
import type { JobNote, JobStore } from '../store/job-store.js';
import type { LockStoreError, LockOwner } from '../store/lock-store.js';
import { createOwnerId } from '../store/owner-id.js';
import { pause } from '../util/promises.js';
import { quote } from '../util/quoted.js';
import type { RunTraces } from '../tracing/tracers.js';
import { StoreLease, validUntil } from '../holding/store-lease.js';
import { type AsyncContext, currentContext } from '../util/async-contexts.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import { RunEnding } from './run-ending.js';
import {
  type ResolvedSingletonRun,
  resolveSingletonRun,
  type RunPlan,
  SINGLETON_RUN_OPTIONS,
  type SingletonRunOptions,
  type SingletonWork,
} from './singleton-run-options.js';
import type { TickClaim, TickStore, TickReply } from '../store/tick-store.js';

/** The pauses between two questions to the tick store: after a failure, and while an earlier run holds the lock. */
const RETRY_PAUSE_MS = 50;
const OVERLAP_PAUSE_MS = 250;

/** So often the missed ticks before a tick are accounted. After that, it is claimed all the same. */
const MOST_GAPS = 3;

/** The attempt of this instance to run one tick. */
interface TickAttempt extends ResolvedSingletonRun {
  readonly owner: LockOwner;
  readonly plan: RunPlan;
  /** Where the store remembers jobs. */
  readonly note: JobNote | undefined;
  readonly startedAt: number;
}

type GrantedTick = Extract<TickReply, { status: 'granted' }>;

/** A reply, and when the command it answers was sent. */
interface Claimed {
  readonly reply: TickReply;
  readonly sentAt: number;
}

/** Starts each tick of a job on one instance of the fleet. */
export class SingletonRuns {
  /** By job: aborts when the newest attempt has its answer, or gives up. */
  readonly #claiming = new Map<string, AbortSignal>();

  constructor(
    private readonly deps: LeaseDeps,
    private readonly leases: LeaseFactory,
    private readonly tickStore: TickStore,
    /** Remembers the jobs, if a store does. */
    readonly jobs?: JobStore,
  ) {}

  /**
   * Runs the work if this instance gets the tick; otherwise resolves to `undefined`. Errors of the work pass through.
   *
   * @param plan what the schedule says of this tick
   * @throws LockBusyError when a manual run is refused because an earlier run has not ended
   * @throws LockShutdownError when a manual run is refused because the application shuts down
   * @throws LockUnavailableError when the tick could not be claimed within `waitMs`
   * @throws LockReentryError when the tick would wait for the end of the run that it is called in
   * @throws InvalidLockOptionsError when an option cannot be right
   */
  async run<T>(options: SingletonRunOptions, work: SingletonWork<T>, plan: RunPlan = {}): Promise<T | undefined> {
    checkWork(work, 'runSingleton');
    const resolved = resolveSingletonRun(options, this.deps.defaults);
    const { resource } = resolved.target;
    const { spreadMs = 0 } = options;
    if (spreadMs > 0) await this.#spread(spreadMs);
    const attempt: TickAttempt = {
      ...resolved,
      owner: { resource, id: createOwnerId(this.deps.store.clientId, this.deps.random), mode: 'exclusive' },
      startedAt: this.deps.clock.now(),
      plan,
      note: this.#noteOf(options, plan),
    };
    const { traces } = this.deps;
    if (!traces.wantsTicks) return this.#run(attempt, work);
    return traces.tick(attempt, this.#described(options), () => this.#run(attempt, work));
  }

  #noteOf(options: SingletonRunOptions, { schedule, previous, next, ...plan }: RunPlan): JobNote | undefined {
    if (this.jobs === undefined || this.jobs.refusal !== undefined) return undefined;
    const { historySize = SINGLETON_RUN_OPTIONS.defaults.historySize, manual = false } = options;
    const kind = manual ? 'manual' : (plan.kind ?? 'tick');
    return { kind, historySize, schedule, previous, next };
  }

  /** The claims of the fleet come at random moments: which instance gets the tick is left to chance. */
  async #spread(spreadMs: number): Promise<void> {
    const { clock, random, closing } = this.deps;
    await pause(clock, spreadMs * random.fraction(), closing);
  }

  async #run<T>(attempt: TickAttempt, work: SingletonWork<T>): Promise<T | undefined> {
    const { options } = attempt;
    const { resource } = attempt.target;
    let claimed = await (attempt.due ? this.#claimInTurn(attempt) : this.#claim(attempt, 'nothing'));
    while (claimed) {
      const { reply, sentAt } = claimed;
      if (reply.status === 'granted' && this.deps.clock.now() >= validUntil(sentAt, attempt.lock.leaseMs)) {
        // The process has stood still since the answer. The claim is still its own.
        claimed = await this.#claim(attempt, 'nothing');
        continue;
      }
      if (reply.status === 'granted') {
        if (reply.isNew) attempt.plan.onUnknown?.();
        return this.#runFollowed(attempt, sentAt, reply, work);
      }
      if (reply.status !== 'claimed' && !(reply.status === 'taken' && standsBy(options, reply))) {
        if (options.manual && reply.status === 'overlap') throw refusalOf(options, resource);
        this.#skip(attempt, reply);
        return undefined;
      }
      if (this.deps.context.lease(resource)?.isHeld()) {
        throw LockReentryError.waitingForItself(resource, 'exclusive', 'exclusive');
      }
      if ((await pause(this.deps.clock, this.#patience(attempt, reply), this.deps.closing)) === 'aborted') {
        if (reply.status === 'claimed') this.#forget(attempt);
        break;
      }
      const isRescuer = options.onCrash === 'retry';
      claimed = await this.#claim(
        attempt,
        reply.status === 'claimed' ? 'nothing' : isRescuer ? 'unfinished' : 'unbegun',
      );
    }
    if (options.manual) throw new LockShutdownError(resource);
    return undefined;
  }

  /** Tells the observers why the tick does not run here. */
  #skip(attempt: TickAttempt, reply: TickReply): void {
    const { options, due } = attempt;
    const { observers, clock, traces } = this.deps;
    if (traces.wantsTicks) traces.tickIs(attempt, { outcome: 'skipped', reason: skipReason(reply) });
    if (!observers.wants('tickSkipped')) return;
    const event = { type: 'tickSkipped', ...this.#described(options) } as const;
    if (reply.status === 'late' || reply.status === 'early') {
      const { status: reason, lateMs } = reply;
      const clockBehindMs = Math.round(lateMs - (clock.wallNow() - due!.at));
      const isClockWrong = Math.abs(clockBehindMs) > due!.earlyMs;
      observers.emit({ ...event, reason, lateMs, ...(isClockWrong && { clockBehindMs }) });
    } else if (reply.status === 'paused') {
      const { by, until } = reply;
      observers.emit({
        ...event,
        reason: 'paused',
        ...(by !== undefined && { by }),
        ...(until !== undefined && { until }),
      });
    } else {
      observers.emit({ ...event, reason: reply.status === 'overlap' ? 'overlap' : 'claimed' });
    }
  }

  /** What all events of the tick say. */
  #described({ job, tick }: SingletonRunOptions) {
    const { service, groups } = this.deps.observers;
    return { service, group: groups.of(job, job), job, tick };
  }

  /** How long until the next question is worth its cost: at the latest when the lease of a dead runner ends. */
  #patience({ lock }: TickAttempt, reply: { status: 'claimed' | 'taken'; ttlMs: number }): number {
    const longest = reply.status === 'claimed' ? OVERLAP_PAUSE_MS : lock.leaseMs / 3;
    return Math.min(longest, reply.ttlMs + 1 + RETRY_PAUSE_MS * this.deps.random.fraction());
  }

  /**
   * After an outage, many ticks of a job may be unclaimed, and the newest one would make the others late. So this
   * process claims them in the order in which they came. No tick waits longer for its turn than its own `waitMs`, so
   * each is tried at least once.
   */
  async #claimInTurn(attempt: TickAttempt): Promise<Claimed | undefined> {
    const { lock, target } = attempt;
    const before = this.#claiming.get(target.resource);
    const over = new AbortController();
    this.#claiming.set(target.resource, over.signal);
    try {
      // At a shutdown, the attempts before this one end at once.
      if (before) await pause(this.deps.clock, lock.waitMs, before);
      const claimed = await this.#claimAfterMissed(attempt);
      if (claimed && claimed.reply.status !== 'early') attempt.plan.onAccounted?.();
      return claimed;
    } finally {
      over.abort();
      if (this.#claiming.get(target.resource) === over.signal) this.#claiming.delete(target.resource);
    }
  }

  /** Claims a tick. If ticks before it were missed, they are accounted first: a claim makes them too late. */
  async #claimAfterMissed(attempt: TickAttempt): Promise<Claimed | undefined> {
    let { note } = attempt;
    for (let gaps = 1; ; gaps++) {
      const claimed = await this.#claim({ ...attempt, note }, 'nothing', attempt.startedAt);
      if (claimed?.reply.status !== 'gap') return claimed;
      await attempt.plan.onGap?.(claimed.reply.last).catch(() => {});
      if (gaps === MOST_GAPS || !attempt.plan.onGap) note = note && { ...note, previous: undefined };
    }
  }

  /**
   * Asks the tick store until it answers. Resolves to `undefined` when the application shuts down meanwhile.
   *
   * @param since when `waitMs` began
   */
  async #claim(
    attempt: TickAttempt,
    takeOver: TickClaim['takeOver'],
    since = this.deps.clock.now(),
  ): Promise<Claimed | undefined> {
    const { deps, tickStore } = this;
    const { clock, closing } = deps;
    const { lock, target, owner, keepMs, options, due, note } = attempt;
    const claim: TickClaim = { owner, leaseMs: lock.leaseMs, keepMs, overlap: options.overlap, takeOver, due, note };
    if (closing.aborted) return undefined;
    let sentAt = 0;
    const answer = await askUntil(deps.alarms, clock, {
      send() {
        sentAt = clock.now();
        return tickStore.claim(target, claim);
      },
      timeoutMs: lock.attemptTimeoutMs,
      // The last attempt begins at the end of `waitMs`, or less than a pause later.
      giveUpAt: since + lock.waitMs + RETRY_PAUSE_MS,
      unanswered({ outcome }, command) {
        if (outcome !== 'failed') deps.orphanReleases.refuseLateGrant(command, owner, lock);
        return false;
      },
      // A grant that arrives after its lease is asked for again: the claim still has this owner id.
      isFinal: ({ status }) => status !== 'granted' || clock.now() < validUntil(sentAt, lock.leaseMs),
      pauseMs: () => RETRY_PAUSE_MS,
      signal: closing,
    });
    if (answer.outcome === 'answered') return { reply: answer.value, sentAt };
    this.#forget(attempt);
    if (answer.outcome === 'aborted') return undefined;
    throw this.#unclaimed(attempt, answer.outcome, answer.error);
  }

  /**
   * The tick may have been granted without an answer, or may be granted later. It does not run here: the claim and the
   * lock of the job are given up, so that any instance may have the tick.
   */
  #forget({ owner, lock, target, keepMs }: TickAttempt): undefined {
    this.deps.orphanReleases.start(owner, lock, () => this.tickStore.giveBack(target, owner, keepMs));
  }

  #unclaimed(
    { options, target }: TickAttempt,
    outcome: 'timeout' | 'failed',
    cause: LockStoreError,
  ): LockUnavailableError {
    const error = new LockUnavailableError(target.resource, `claim tick ${options.tick} of`, outcome, cause);
    this.deps.observers.emit({ type: 'tickFailed', ...this.#described(options), error });
    return error;
  }

  /** Runs the tick, in a span where a tracer makes one. */
  #runFollowed<T>(
    attempt: TickAttempt,
    sentAt: number,
    reply: GrantedTick,
    work: SingletonWork<T>,
  ): Promise<T | undefined> {
    const { traces, observers } = this.deps;
    if (!traces.hasTracer) return this.#runTick(attempt, sentAt, reply, work);
    const { options, owner, lock } = attempt;
    const run = { job: options.job, tick: options.tick, rerun: reply.rerun };
    return traces.followed.runTick(observers.describeCall(owner.resource, lock), run, (followed) =>
      this.#runTick(attempt, sentAt, reply, work, followed),
    );
  }

  async #runTick<T>(
    attempt: TickAttempt,
    sentAt: number,
    { fencingToken, rerun, missed }: GrantedTick,
    work: SingletonWork<T>,
    followed?: RunTraces,
  ): Promise<T | undefined> {
    const { deps, leases } = this;
    const { options, owner, lock, startedAt } = attempt;
    const { job, tick, manual = false } = options;
    const storeLease = new StoreLease(owner, fencingToken, sentAt, lock, deps.clock);
    const ending = attempt.note && new RunEnding(this.jobs!, owner, fencingToken, options.historyMessages ?? false);
    if (ending) storeLease.releasedBy = ending;
    const grant = { storeLease, attempts: 1, waitedMs: deps.clock.now() - startedAt };
    const { also } = attempt;
    const lease = await (also
      ? this.#holdBoth(attempt, grant, also)
      : this.#take(attempt, (options, caller) => leases.hold(grant, options, caller)));
    if (lease === undefined) return undefined;
    ending?.begins();
    if (followed)
      deps.traces.followed.tickHeld(followed, lease.hold, { fencingToken, waitedMs: grant.waitedMs, attempts: 1 });
    const catchUp = attempt.plan.kind === 'catchUp';
    const described = { ...this.#described(options), ...(manual && { manual }), ...(catchUp && { catchUp }) };
    const at = options.due?.at;
    return leases.runUnder(lease, async () => {
      const delayMs = deps.clock.wallNow() - (at ?? 0);
      deps.observers.emit({ type: 'tickStarted', ...described, rerun, ...(at !== undefined && { delayMs }) });
      const began = deps.clock.now();
      const cutOff = this.#finishBeforeCutOff(attempt, lease);
      let failed = true;
      try {
        const result = await work(lease, { job, tick, rerun, manual, ...(missed && { missed }), lease });
        failed = false;
        return result;
      } catch (error) {
        ending?.failedWith(error);
        throw error;
      } finally {
        const ranMs = deps.clock.now() - began;
        const outcome = diedWith(lease) ? 'lost' : failed ? 'error' : 'ok';
        ending?.endedAs(outcome);
        cutOff?.cancel();
        if (!failed || !diedWith(lease)) await this.#finish(attempt, lease);
        if (deps.traces.wantsTicks) deps.traces.tickIs(attempt, { fencingToken, rerun, ranMs, outcome });
        deps.observers.emit({ type: 'tickFinished', ...described, rerun, ranMs, outcome });
      }
    });
  }

  /** Takes charge of the lock that was granted with the tick. */
  #take(
    { owner, lock }: TickAttempt,
    take: (options: ResolvedLockOptions, caller?: AsyncContext) => SingleLease | Promise<SingleLease>,
  ): SingleLease | Promise<SingleLease> {
    const { traces } = this.deps;
    if (!traces.wantsAcquires) return take(lock);
    // Outside of the trace: the work is no part of the acquisition.
    const caller = currentContext();
    return traces.acquire(owner.resource, lock, 'tick', async (options) => take(options, caller));
  }

  /**
   * Takes the lock of the old code too. Resolves to `undefined` where an old process has it: that one runs the tick, or
   * has run it. So it does not run again.
   *
   * @throws LockError when the lock could not be asked for; then any instance may have the tick
   */
  async #holdBoth(attempt: TickAttempt, grant: Grant, also: AlsoLock): Promise<SingleLease | undefined> {
    const { options } = attempt;
    const isOld = (error: unknown): boolean => error instanceof LockBusyError && error.foreignHolder !== undefined;
    const failed = async (error: unknown, hold: Hold): Promise<void> => {
      if (isOld(error)) await this.#finish(attempt, { hold });
      else this.#forget(attempt);
    };
    try {
      const startedAt = this.deps.clock.now();
      return await this.#take(attempt, (lock, caller) =>
        this.leases.holdBoth(grant, lock, also, { startedAt, failed, caller }),
      );
    } catch (error) {
      const described = this.#described(options);
      if (options.manual) throw error;
      if (isOld(error)) this.deps.traces.tickIs(attempt, { outcome: 'skipped', reason: 'foreign' });
      if (isOld(error)) this.deps.observers.emit({ type: 'tickSkipped', ...described, reason: 'foreign' });
      else if (error instanceof LockError) this.deps.observers.emit({ type: 'tickFailed', ...described, error });
      if (isOld(error) || error instanceof LockShutdownError) return undefined;
      throw error;
    }
  }

  /**
   * A run that exceeds `maxHoldMs` has not crashed, and is not run again. Its tick is finished while the lock still
   * stands: afterwards another instance could take the tick over first.
   */
  #finishBeforeCutOff(attempt: TickAttempt, lease: SingleLease): Timer | undefined {
    const { options, lock } = attempt;
    if (options.onCrash === 'skip' || lock.maxHoldMs === Infinity) return undefined;
    const delayMs = lock.maxHoldMs - lock.leaseMs / 3;
    return this.deps.clock.setTimer(() => void this.#finish(attempt, lease), delayMs, { background: true });
  }

  /** Called before the lock is released: after that, an unfinished tick counts as one whose runner died. */
  async #finish(
    { options, target, owner, lock, keepMs }: TickAttempt,
    { hold }: Pick<SingleLease, 'hold'>,
  ): Promise<void> {
    if (options.onCrash === 'skip') return;
    const { alarms, clock, closing } = this.deps;
    await askUntil(alarms, clock, {
      send: () => this.tickStore.finish(target, owner, keepMs),
      // Leaves time for more than one try within the lease.
      timeoutMs: Math.min(lock.attemptTimeoutMs, lock.leaseMs / 3),
      giveUpAt: clock.now() + lock.leaseMs + RETRY_PAUSE_MS,
      // The shutdown did not wait for this run: the connections are closed.
      unanswered: () => closing.aborted && !hold.isHeld(),
      pauseMs: () => RETRY_PAUSE_MS,
    });
  }
}

/**
 * Whether this instance waits to take the tick over from a runner that dies, or from an instance that never begins the
 * run.
 */
function standsBy({ overlap, onCrash }: SingletonRunOptions, { isBegun }: { isBegun: boolean }): boolean {
  return onCrash === 'retry' || (overlap === 'wait' && !isBegun);
}

/** Whether the run failed with its lease lost: that counts as a crash. */
function diedWith({ hold }: SingleLease): boolean {
  return !hold.isHeld() && !hold.isReleased;
}

/** The error of a manual run that is refused. */
function refusalOf({ job, tick }: SingletonRunOptions, resource: string): LockBusyError {
  const message =
    `The job ${quote(job)} was not run by hand (${quote(tick)}): an earlier run has not ended, on this or another ` +
    `instance. Try again when it has, or set overlap: 'wait'.`;
  return new LockBusyError(resource, 1, 0, undefined, message);
}

function skipReason({ status }: TickReply): 'claimed' | 'overlap' | 'paused' | 'late' | 'early' {
  const isNamed = status === 'late' || status === 'early' || status === 'overlap' || status === 'paused';
  return isNamed ? status : 'claimed';
}
