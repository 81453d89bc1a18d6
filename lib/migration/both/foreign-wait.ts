import { aborted, waitedForStore } from '../../core/acquiring/acquire-errors.js';
import { isWaitTold, LONG_WAIT_MS, tellOfLongWait, tellOfWait } from '../../core/acquiring/waits.js';
import { LockBusyError, LockTimeoutError, LockUnavailableError } from '../../core/api/errors.js';
import type { ForeignReply } from '../../core/api/foreign-lock.js';
import type { ResolvedLockOptions } from '../../core/api/lock-options.js';
import { NO_HOLDERS } from '../../core/api/holder.js';
import type { ForeignHold } from './foreign-hold.js';
import type { Grant } from '../../core/holding/hold.js';
import { AttemptLog, failurePause, givesUpAt, grantedTooLate } from '../../core/places/asking.js';
import { withTimeout } from '../../core/store/ask.js';
import { LockStoreError } from '../../core/store/store-error.js';
import type { Runtime } from '../../core/holding/runtime.js';
import { jitter } from '../../core/util/clock.js';
import { pause } from '../../core/util/promises.js';

/**
 * How long a call waits for a foreign holder before it asks again, at most: its lock may be released early. Only one
 * process of the new release asks for a resource at a time, the one that has our lock.
 */
const LONGEST_PAUSE_MS = 100;
/** The same, where the other library says when its lock is free. */
const LONGEST_WAIT_MS = 1_000;
/** No pause is shorter, whatever the other library says, and how often its holder changes. */
const SHORTEST_PAUSE_MS = 5;

/** A holder that stays this long hands nothing on. What looked like another holder may have been its own renewal. */
const CALM_MS = 1_000;

/**
 * How long to pause between two questions. Old processes that ask more often than this one have the lock one after
 * another, and leave it next to nothing. So the pauses begin short, and double while the holder stays. Each holder that
 * came in between halves the longest pause: then this process asks about as often as the old ones.
 */
class ForeignPauses {
  #nextMs = SHORTEST_PAUSE_MS;
  #longestMs = LONGEST_PAUSE_MS;
  /** When the lease that the last answer told of ends, at the latest. */
  #endsAt = Infinity;
  #calmSince = 0;

  /**
   * @param ttlMs what is left of the holder's lease, by a question that was sent at `sentAt`
   * @returns how long to pause, before jitter
   */
  next(ttlMs: number, sentAt: number, now: number): number {
    // A lease ends later than the one before. Those of several servers differ by milliseconds.
    if (sentAt + ttlMs > this.#endsAt + SHORTEST_PAUSE_MS) {
      this.#nextMs = SHORTEST_PAUSE_MS;
      this.#longestMs = Math.max(SHORTEST_PAUSE_MS, this.#longestMs / 2);
      this.#calmSince = now;
    } else if (now >= this.#calmSince + CALM_MS) {
      this.#longestMs = Math.min(LONGEST_PAUSE_MS, this.#longestMs * 2);
      this.#calmSince = now;
    }
    this.#endsAt = now + ttlMs;
    const pauseMs = Math.min(this.#nextMs, this.#longestMs);
    this.#nextMs = 2 * pauseMs;
    return pauseMs;
  }
}

/** Our lock is held; this is the wait for the other one. */
export interface ForeignWait {
  readonly resource: string;
  readonly options: ResolvedLockOptions;
  /** Whether the wait ends as soon as the lock is found to be busy. */
  readonly isBusyFinal: boolean;
  /** Whether `waitMs` counts from the last answer. */
  readonly isPatient: boolean;
  /** When the whole call began, on the monotonic clock. */
  readonly startedAt: number;
  /** Of our lock. It says whether the call has waited. */
  readonly grant: Grant;
  readonly closing: AbortSignal;
  /** Aborts when our lock is lost, the caller gives up, or the application shuts down. */
  readonly signal: AbortSignal;
}

/**
 * Asks for a foreign lock until it is held. If it is not had in the end, whatever may have been granted is released.
 *
 * @throws LockBusyError, LockTimeoutError, LockUnavailableError, LockAbortedError, LockShutdownError
 */
export async function acquireForeign(foreign: ForeignHold, wait: ForeignWait, deps: Runtime): Promise<void> {
  const attempts = new ForeignAttempts(foreign, wait, deps);
  try {
    while (!(await attempts.next()));
  } catch (error) {
    attempts.giveUp();
    throw error;
  }
}

class ForeignAttempts {
  readonly #log = new AttemptLog();
  readonly #pauses = new ForeignPauses();
  #sentAt = 0;
  /** What is left of the foreign holder's lock, by the last answer. */
  #ttlMs = 0;
  /** Whether another run of the same job has it, by the last answer. It has ended, or ends soon. */
  #isOurs = false;
  #answeredAt = -Infinity;
  #isToldOf = false;

  constructor(
    private readonly foreign: ForeignHold,
    private readonly wait: ForeignWait,
    private readonly deps: Runtime,
  ) {}

  /** Asks once, and pauses if that was in vain. @returns whether it is held now */
  async next(): Promise<boolean> {
    if (await this.#ask()) return true;
    const { options, signal } = this.wait;
    const { clock } = this.deps;
    if (signal.aborted) throw this.#abortedError();
    if (options.waitMs === 0 || (this.#isBusyFinal && this.#log.last === 'busy')) throw this.#inVain();
    const leftMs = this.#giveUpAt - clock.now();
    options.followed?.waits(() => NO_HOLDERS);
    this.#tellOfWait();
    this.#tellOfLongWait();
    if (leftMs > 0) await this.#pause(leftMs);
    if (signal.aborted) throw this.#abortedError();
    // It may be back.
    if (this.#log.awaySince !== undefined) this.#lookForServer();
    if (clock.now() >= this.#giveUpAt) throw this.#inVain();
    return false;
  }

  /** What was granted, or may still be, is released. */
  giveUp(): void {
    if (this.#log.isAmbiguous) this.deps.orphanReleases.start(this.foreign.owner, this.wait.options);
  }

  get #giveUpAt(): number {
    const { startedAt, options, isPatient } = this.wait;
    return givesUpAt(isPatient ? Math.max(startedAt, this.#answeredAt) : startedAt, options, this.#log.awaySince);
  }

  get #isBusyFinal(): boolean {
    return this.wait.isBusyFinal && !this.#isOurs;
  }

  async #ask(): Promise<boolean> {
    const { foreign, deps } = this;
    const { options, signal } = this.wait;
    if (signal.aborted) throw this.#abortedError();
    const now = deps.clock.now();
    const patienceMs = options.waitMs === 0 ? Infinity : Math.max(1, this.#giveUpAt - now);
    this.#log.sent(now);
    this.#sentAt = now;
    const command = foreign.acquire(options.leaseMs, signal);
    const answer = await withTimeout(deps.alarms, command, Math.min(options.attemptTimeoutMs, patienceMs), signal);
    if (answer.outcome === 'answered') return this.#read(answer.value);
    if (answer.outcome === 'failed') {
      this.#log.failed(answer.error);
      if (answer.error.failure === 'refused') throw this.#inVain();
      this.#lookForServer();
      return false;
    }
    // An answer may come after the release that should have ended it.
    const granted = command.then(({ status }) => ({ status: status === 'held' ? 'granted' : status }));
    deps.orphanReleases.refuseLateGrant(granted, foreign.owner, options);
    if (answer.outcome === 'timeout') {
      this.#log.timedOut(answer.error, deps.clock.now(), patienceMs, options.attemptTimeoutMs);
      const trouble = foreign.claim.describeTrouble?.();
      if (trouble !== undefined) this.#log.notice(new LockStoreError('unknown', trouble));
    } else this.#log.isAmbiguous = true;
    return false;
  }

  #lookForServer(): void {
    this.#log.noteAway(this.foreign.claim.describeTrouble?.() !== undefined, this.deps.clock.now());
  }

  #read(reply: ForeignReply): boolean {
    const { clock } = this.deps;
    if (reply.status === 'held') {
      // What comes next may fail, and then it has to be released.
      this.#log.isAmbiguous = true;
      if (clock.now() < this.foreign.deadline) return true;
      this.#log.unanswered(grantedTooLate());
      return false;
    }
    this.#ttlMs = reply.ttlMs;
    this.#isOurs = reply.isOurs ?? false;
    this.#answeredAt = clock.now();
    this.#log.busy({ ttlMs: reply.ttlMs });
    return false;
  }

  /** No holder is known: the other library names none. */
  #tellOfWait(): void {
    const { resource, options, grant } = this.wait;
    if (grant.hasWaited || !isWaitTold(resource)) return;
    grant.hasWaited = true;
    if (this.deps.observers.wants('waiting')) tellOfWait(this.deps, resource, options, NO_HOLDERS);
  }

  #tellOfLongWait(): void {
    const { resource, options, startedAt } = this.wait;
    const now = this.deps.clock.now();
    if (this.#isToldOf || now < startedAt + LONG_WAIT_MS) return;
    this.#isToldOf = true;
    tellOfLongWait(this.deps, resource, options, now - startedAt, this.#log, now);
  }

  async #pause(leftMs: number): Promise<void> {
    const { foreign, deps } = this;
    const { clock, random } = deps;
    const { signal } = this.wait;
    if (this.#log.last !== 'busy') {
      await pause(clock, Math.min(leftMs, failurePause(this.#log, random)), signal);
      return;
    }
    const askedAt = clock.now();
    const asLong = (longest: number): number => Math.min(leftMs, Math.min(longest, this.#ttlMs + 1) * jitter(random));
    const woken = new AbortController();
    const wake = (): void => woken.abort();
    signal.addEventListener('abort', wake, { once: true });
    const toldWithinMs = asLong(LONGEST_WAIT_MS);
    const told = foreign.claim.whenFree?.(toldWithinMs, woken.signal);
    told?.then(wake, () => {});
    const longestMs = told ? LONGEST_WAIT_MS : this.#pauses.next(this.#ttlMs, this.#sentAt, askedAt);
    await pause(clock, asLong(longestMs), woken.signal);
    signal.removeEventListener('abort', wake);
    wake();
    // Any program may send such messages.
    const restMs = askedAt + SHORTEST_PAUSE_MS - clock.now();
    if (restMs > 0) await pause(clock, Math.min(leftMs, restMs), signal);
  }

  #inVain(): Error {
    const { resource, options, startedAt } = this.wait;
    const { clock, observers } = this.deps;
    const { lock, key } = this.foreign;
    const log = this.#log;
    if (log.last === 'busy') {
      const holder = { library: lock.library, key, ttlMs: this.#ttlMs };
      if (this.#isBusyFinal) return LockBusyError.byForeign(resource, log.attempts, holder);
      return LockTimeoutError.timeoutByForeign(resource, clock.now() - startedAt, log.attempts, holder);
    }
    const { failure = 'unknown', message = 'no answer yet' } = log.lastError ?? {};
    const cause = new LockStoreError(failure, `${this.foreign.name}: ${message}`);
    const waitedMs = waitedForStore({ startedAt, options }, clock.now());
    const error = new LockUnavailableError(resource, 'acquire', log.last, cause, waitedMs);
    if (observers.wants('foreignFailed')) {
      observers.emit({ type: 'foreignFailed', ...observers.describeCall(resource, options), error });
    }
    return error;
  }

  #abortedError(): Error {
    const { resource, options, closing } = this.wait;
    return aborted(resource, closing, options.signal);
  }
}
