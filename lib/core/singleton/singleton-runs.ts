import { withTimeout } from '../store/ask.js';
import type { Timer } from '../util/clock.js';
import { LockUnavailableError } from '../api/errors.js';
import { LockReentryError } from '../api/reentry-error.js';
import type { SingleLease } from '../lease/single-lease.js';
import type { LockClient } from '../lock-client.js';
import { checkWork } from '../api/locked-work.js';
import type { LockStoreError, LockOwner } from '../store/lock-store.js';
import { pause } from '../util/pause.js';
import { StoreLease } from '../holding/store-lease.js';
import {
  type ResolvedSingletonRun,
  resolveSingletonRun,
  type SingletonRunOptions,
  type SingletonWork,
} from './singleton-run-options.js';
import type { TickClaim, TickStore, TickReply } from '../store/tick-store.js';
import { validUntil } from '../store/validity.js';

/** Pauses between two questions to the tick store: after a failure, and while an earlier run holds the lock. */
const RETRY_PAUSE_MS = 50;
const OVERLAP_PAUSE_MS = 250;

/** One tick, on its way to be run or not. */
interface Candidate extends ResolvedSingletonRun {
  readonly ownership: LockOwner;
  readonly startedAt: number;
}

/** A reply, and when the command it answers was sent. */
interface Claimed {
  readonly reply: TickReply;
  readonly sentAt: number;
}

/** Starts each tick of a job on one instance of the fleet. */
export class SingletonRuns {
  /** By job: aborts when the claim that was begun last has its answer, or is given up. */
  readonly #claiming = new Map<string, AbortSignal>();

  constructor(
    private readonly client: LockClient,
    private readonly tickStore: TickStore,
  ) {}

  /**
   * Runs the work if this instance gets the tick; otherwise returns nothing, silently. The work's own errors pass through.
   *
   * @throws LockUnavailableError when the tick could not be claimed within `waitMs`
   * @throws LockReentryError when the tick would wait for the end of the run that it is called in
   * @throws InvalidLockOptionsError when an option cannot be right
   */
  async run<T>(options: SingletonRunOptions, work: SingletonWork<T>): Promise<T | undefined> {
    checkWork(work, 'runSingleton');
    const resolved = resolveSingletonRun(options, this.client.defaults);
    const { resource } = resolved.target;
    const candidate: Candidate = {
      ...resolved,
      ownership: { resource, id: this.client.newOwner(), mode: 'exclusive' },
      startedAt: this.client.clock.now(),
    };
    let claimed = await (resolved.due ? this.#claimInTurn(candidate) : this.#claim(candidate, 'nothing'));
    while (claimed) {
      const { reply, sentAt } = claimed;
      if (reply.status === 'granted') return this.#runTick(candidate, sentAt, reply, work);
      if (reply.status !== 'claimed' && !(reply.status === 'taken' && standsBy(options, reply))) {
        this.#skip(candidate, reply);
        return undefined;
      }
      if (this.client.current(resource)?.isHeld()) {
        throw LockReentryError.waitingForItself(resource, 'exclusive', 'exclusive');
      }
      if ((await pause(this.client.clock, this.#patience(candidate, reply), this.client.closing)) === 'aborted') {
        return reply.status === 'claimed' ? this.#forget(candidate) : undefined;
      }
      const isRescuer = options.onCrash === 'retry';
      claimed = await this.#claim(
        candidate,
        reply.status === 'claimed' ? 'nothing' : isRescuer ? 'unfinished' : 'unbegun',
      );
    }
    return undefined;
  }

  /** The tick does not run here. */
  #skip({ options: { job, tick }, due }: Candidate, reply: TickReply): void {
    const event = { type: 'tickSkipped', job, tick } as const;
    const { observers, clock } = this.client;
    if (reply.status === 'late' || reply.status === 'early') {
      const { status: reason, lateMs } = reply;
      const clockBehindMs = Math.round(lateMs - (clock.wallNow() - due!.at));
      const isClockWrong = Math.abs(clockBehindMs) > due!.earlyMs;
      observers.emit({ ...event, reason, lateMs, ...(isClockWrong && { clockBehindMs }) });
    } else {
      observers.emit({ ...event, reason: reply.status === 'overlap' ? 'overlap' : 'claimed' });
    }
  }

  /** How long until it is worth asking again. A dead runner's lock ends with its lease, so no later than that. */
  #patience({ lock }: Candidate, reply: { status: 'claimed' | 'taken'; ttlMs: number }): number {
    const longest = reply.status === 'claimed' ? OVERLAP_PAUSE_MS : lock.leaseMs / 3;
    return Math.min(longest, reply.ttlMs + 1 + RETRY_PAUSE_MS * this.client.random.fraction());
  }

  /**
   * After an outage many ticks of a job may wait to be claimed, and the newest one would make the others late: so the ticks of this
   * process go in the order in which they came. None waits for its turn longer than it is tried, so each is tried once at least.
   */
  async #claimInTurn(candidate: Candidate): Promise<Claimed | undefined> {
    const { lock, target } = candidate;
    const before = this.#claiming.get(target.resource);
    const over = new AbortController();
    this.#claiming.set(target.resource, over.signal);
    try {
      // At a shutdown the claims before it end at once.
      if (before) await pause(this.client.clock, lock.waitMs, before);
      return await this.#claim(candidate, 'nothing', candidate.startedAt);
    } finally {
      over.abort();
      if (this.#claiming.get(target.resource) === over.signal) this.#claiming.delete(target.resource);
    }
  }

  /**
   * Asks the tick store until it answers. Gives nothing when the application shuts down meanwhile.
   *
   * @param since when the `waitMs` began for which it is tried
   */
  async #claim(
    candidate: Candidate,
    takeOver: TickClaim['takeOver'],
    since = this.client.clock.now(),
  ): Promise<Claimed | undefined> {
    const { client, tickStore } = this;
    const { clock, closing } = client;
    const { lock, target, ownership, keepMs, options, due } = candidate;
    const claim: TickClaim = { ownership, leaseMs: lock.leaseMs, keepMs, overlap: options.overlap, takeOver, due };
    const giveUpAt = since + lock.waitMs;
    for (;;) {
      if (closing.aborted) return undefined;
      const sentAt = clock.now();
      const command = tickStore.claim(target, claim);
      const answer = await withTimeout(client.alarms, command, lock.attemptTimeoutMs, closing);
      if (answer.outcome === 'aborted' || answer.outcome === 'timeout') {
        client.orphanReleases.refuseLateGrant(command, ownership, lock);
      }
      if (answer.outcome === 'aborted') return this.#forget(candidate);
      if (answer.outcome === 'answered') {
        // A grant that comes when its lease is over is asked for again: it is still this id's.
        if (answer.value.status !== 'granted' || clock.now() < validUntil(sentAt, lock.leaseMs)) {
          return { reply: answer.value, sentAt };
        }
      } else if (answer.error.failure === 'refused' || clock.now() >= giveUpAt) {
        this.#forget(candidate);
        throw this.#unclaimed(candidate, answer.outcome, answer.error);
      }
      if ((await pause(clock, RETRY_PAUSE_MS, closing)) === 'aborted') return this.#forget(candidate);
    }
  }

  /**
   * The tick may have been granted without our knowing, or waits to be. It does not run here: any instance may have it, and the
   * job's lock is not kept until it expires.
   */
  #forget({ ownership, lock, target, keepMs }: Candidate): undefined {
    this.client.orphanReleases.start(ownership, lock, () => this.tickStore.giveBack(target, ownership, keepMs));
  }

  #unclaimed(
    { options, target }: Candidate,
    outcome: 'timeout' | 'failed',
    cause: LockStoreError,
  ): LockUnavailableError {
    const error = new LockUnavailableError(target.resource, `claim tick ${options.tick} of`, outcome, cause);
    this.client.observers.emit({ type: 'tickFailed', job: options.job, tick: options.tick, error });
    return error;
  }

  async #runTick<T>(
    candidate: Candidate,
    sentAt: number,
    { fencingToken, rerun }: Extract<TickReply, { status: 'granted' }>,
    work: SingletonWork<T>,
  ): Promise<T> {
    const { client } = this;
    const { options, ownership, lock, startedAt } = candidate;
    const { job, tick } = options;
    const storeLease = new StoreLease(ownership, fencingToken, sentAt, lock, client.clock);
    const lease = client.hold({ storeLease, attempts: 1, waitedMs: client.clock.now() - startedAt }, lock);
    return client.runUnder(lease, async () => {
      client.observers.emit({ type: 'tickStarted', job, tick, rerun });
      const began = client.clock.now();
      const cutOff = this.#finishBeforeCutOff(candidate, lease);
      let failed = true;
      try {
        const result = await work(lease, { job, tick, rerun, lease });
        failed = false;
        return result;
      } finally {
        const ranMs = client.clock.now() - began;
        cutOff?.cancel();
        if (!failed || !diedWith(lease)) await this.#finish(candidate, lease);
        client.observers.emit({ type: 'tickFinished', job, tick, ranMs });
      }
    });
  }

  /**
   * A run that exceeds `maxHoldMs` has not crashed, and is not run again: its tick counts as finished while the lock is
   * still there, because after that a rescuer may come first.
   */
  #finishBeforeCutOff(candidate: Candidate, lease: SingleLease): Timer | undefined {
    const { options, lock } = candidate;
    if (options.onCrash === 'skip' || lock.maxHoldMs === Infinity) return undefined;
    const delayMs = lock.maxHoldMs - lock.leaseMs / 3;
    return this.client.clock.setTimer(() => void this.#finish(candidate, lease), delayMs, { background: true });
  }

  /** Before the lock is released: from then on an unfinished tick counts as one whose runner died. */
  async #finish({ options, target, ownership, lock, keepMs }: Candidate, { hold }: SingleLease): Promise<void> {
    if (options.onCrash === 'skip') return;
    const { clock, closing } = this.client;
    const giveUpAt = clock.now() + lock.leaseMs;
    // There is time for more than one try, however patient each may be.
    const attemptTimeoutMs = Math.min(lock.attemptTimeoutMs, lock.leaseMs / 3);
    for (;;) {
      const command = this.tickStore.finish(target, ownership, keepMs);
      const answer = await withTimeout(this.client.alarms, command, attemptTimeoutMs);
      if (answer.outcome === 'answered' || answer.outcome === 'aborted' || clock.now() >= giveUpAt) return;
      if (answer.error.failure === 'refused') return;
      // The shutdown did not wait for this run: the connections are closed.
      if (closing.aborted && !hold.isHeld()) return;
      await pause(clock, RETRY_PAUSE_MS);
    }
  }
}

/** Whether the instance waits to take the tick over: from a runner that dies, or from an instance that never begins the run. */
function standsBy({ overlap, onCrash }: SingletonRunOptions, { isBegun }: { isBegun: boolean }): boolean {
  return onCrash === 'retry' || (overlap === 'wait' && !isBegun);
}

/** Whether a run that failed may have failed because its lease was taken from it: as good as a crash. */
function diedWith({ hold }: SingleLease): boolean {
  return !hold.isHeld() && !hold.isReleased;
}
